{{/* Names: `release` is short enough for every suffix of ours to fit into 63 characters. */}}
{{- define "headwater.name" -}}
{{ .Release.Name | trunc 28 | trimSuffix "-" }}
{{- end }}

{{- define "headwater.labels" -}}
app.kubernetes.io/name: headwater
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- define "headwater.commonLabels" -}}
app.kubernetes.io/name: headwater
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "headwater.image" -}}
{{- $tag := .Values.image.tag | default .Chart.AppVersion -}}
{{ .Values.image.repository }}{{ ternary "@" ":" (hasPrefix "sha256:" $tag) }}{{ $tag }}
{{- end }}

{{/* A variable whose value is a key of a Secret; nothing where there is none. */}}
{{- define "headwater.secretVariable" -}}
{{- with .from }}
- name: {{ $.name }}
  valueFrom:
    secretKeyRef: {name: {{ .name | quote }}, key: {{ .key | quote }}}
{{- end }}
{{- end }}

{{- define "headwater.variable" -}}
{{- if .value }}
- name: {{ .name }}
  value: {{ .value | quote }}
{{- end }}
{{- end }}

{{- define "headwater.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
fsGroupChangePolicy: OnRootMismatch
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "headwater.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{/* What all processes read that is no secret, as variables. */}}
{{- define "headwater.settings" -}}
{{- range $name, $value := .Values.settings }}
{{- if not (kindIs "invalid" $value) }}
HEADWATER_{{ upper $name }}: {{ if kindIs "slice" $value }}{{ $parts := list }}{{ range $value }}{{ $parts = append $parts (ternary . (toJson .) (kindIs "string" .)) }}{{ end }}{{ join "," $parts | quote }}{{ else if kindIs "string" $value }}{{ $value | quote }}{{ else }}{{ toJson $value | quote }}{{ end }}
{{- end }}
{{- end }}
{{- range $name, $value := .Values.tracing.variables }}
{{ $name }}: {{ $value | quote }}
{{- end }}
HEADWATER_METRICS_HOST: "0.0.0.0"
HEADWATER_METRICS_PORT: "9464"
{{- if .Values.ingress.enabled }}
{{- if not .Values.settings.public_url }}
HEADWATER_PUBLIC_URL: {{ printf "https://%s" .Values.ingress.host | quote }}
{{- end }}
{{- if not .Values.settings.trusted_proxies }}
HEADWATER_TRUSTED_PROXIES: {{ join "," .Values.ingress.proxies | quote }}
{{- end }}
{{- end }}
{{- end }}

{{/* The files that settings name: variable, folder. */}}
{{- define "headwater.files" -}}
controlCa: ""
plans: HEADWATER_PLANS_FILE
webhookCa: HEADWATER_WEBHOOK_CA_FILE
backupAgeIdentity: HEADWATER_BACKUP_AGE_IDENTITY_FILE
temporalCa: HEADWATER_TEMPORAL_TLS_CA_FILE
temporalCert: HEADWATER_TEMPORAL_TLS_CERT_FILE
temporalKey: HEADWATER_TEMPORAL_TLS_KEY_FILE
{{- end }}

{{/* The following take `root` and `files`, the names of those that the pod gets. */}}
{{- define "headwater.fileVariables" -}}
{{- $root := .root }}
{{- $files := .files }}
{{- range $file, $variable := include "headwater.files" $root | fromYaml }}
{{- $from := index $root.Values.files $file }}
{{- if and $from $variable (has $file $files) }}
- name: {{ $variable }}
  value: {{ printf "/etc/headwater/%s/%s" (snakecase $file) $from.key | quote }}
{{- end }}
{{- end }}
{{- end }}

{{- define "headwater.fileMounts" -}}
{{- $files := .files }}
{{- range $file, $from := .root.Values.files }}
{{- if and $from (has $file $files) }}
- {name: {{ kebabcase $file }}, mountPath: /etc/headwater/{{ snakecase $file }}, readOnly: true}
{{- end }}
{{- end }}
{{- end }}

{{- define "headwater.fileVolumes" -}}
{{- $files := .files }}
{{- range $file, $from := .root.Values.files }}
{{- if and $from (has $file $files) }}
- name: {{ kebabcase $file }}
  {{- if $from.secret }}
  secret: {secretName: {{ $from.secret | quote }}, defaultMode: 0440}
  {{- else }}
  configMap: {name: {{ $from.configMap | quote }}}
  {{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- define "headwater.storeVariables" -}}
{{ include "headwater.secretVariable" (dict "name" "HEADWATER_CONTROL_DSN" "from" .Values.secrets.controlDsn) }}
{{ include "headwater.secretVariable" (dict "name" "HEADWATER_SECRET_KEYS" "from" .Values.secrets.secretKeys) }}
{{- end }}

{{/* A Deployment with its disruption budget and, where it is on, its autoscaler. Takes `root`, `component` (of names
and labels), `options` (replicas and so on), `command`, `probes`, `ports`, `variables`, `preStop`, `backups`, `files`
(those that only some components get). */}}
{{- define "headwater.deployment" -}}
{{- $root := .root }}
{{- $files := concat (list "controlCa" "plans" "webhookCa" "temporalCa" "temporalCert" "temporalKey") (.files | default list) }}
{{- $given := dict "root" $root "files" $files }}
{{- $name := printf "%s-%s" (include "headwater.name" $root) .component }}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ $name }}
  namespace: {{ $root.Release.Namespace }}
  labels:
    {{- include "headwater.commonLabels" $root | nindent 4 }}
    app.kubernetes.io/component: {{ .component }}
spec:
  {{- if not .options.autoscaling.enabled }}
  replicas: {{ .options.replicas }}
  {{- end }}
  revisionHistoryLimit: 5
  strategy:
    type: RollingUpdate
    rollingUpdate: {maxUnavailable: 0, maxSurge: 1}
  selector:
    matchLabels:
      {{- include "headwater.labels" . | nindent 6 }}
  template:
    metadata:
      labels:
        {{- include "headwater.labels" . | nindent 8 }}
        app.kubernetes.io/version: {{ $root.Chart.AppVersion | quote }}
      annotations:
        # A new setting is a new pod.
        checksum/settings: {{ include "headwater.settings" $root | sha256sum }}
        {{- if $root.Values.metrics.annotations }}
        prometheus.io/scrape: "true"
        prometheus.io/port: "9464"
        prometheus.io/path: /metrics
        {{- end }}
    spec:
      serviceAccountName: {{ include "headwater.name" $root }}
      automountServiceAccountToken: false
      enableServiceLinks: false
      terminationGracePeriodSeconds: {{ .options.terminationGracePeriodSeconds }}
      securityContext:
        {{- include "headwater.podSecurity" $root | nindent 8 }}
      {{- with $root.Values.image.pullSecrets }}
      imagePullSecrets:
        {{- range . }}
        - name: {{ . | quote }}
        {{- end }}
      {{- end }}
      topologySpreadConstraints:
        {{- range list "topology.kubernetes.io/zone" "kubernetes.io/hostname" }}
        - maxSkew: 1
          topologyKey: {{ . }}
          whenUnsatisfiable: ScheduleAnyway
          labelSelector:
            matchLabels:
              {{- include "headwater.labels" $ | nindent 14 }}
        {{- end }}
      {{- with .options.nodeSelector }}
      nodeSelector:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with .options.tolerations }}
      tolerations:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      containers:
        - name: headwater
          image: {{ include "headwater.image" $root | quote }}
          imagePullPolicy: {{ $root.Values.image.pullPolicy }}
          command: {{ toJson .command }}
          envFrom:
            - configMapRef: {name: {{ include "headwater.name" $root }}-settings}
          env:
            {{- include "headwater.storeVariables" $root | trim | nindent 12 }}
            {{- with include "headwater.secretVariable" (dict "name" "HEADWATER_TEMPORAL_API_KEY" "from" $root.Values.secrets.temporalApiKey) | trim }}
            {{- . | nindent 12 }}
            {{- end }}
            {{- with include "headwater.secretVariable" (dict "name" "OTEL_EXPORTER_OTLP_HEADERS" "from" $root.Values.tracing.headers) | trim }}
            {{- . | nindent 12 }}
            {{- end }}
            {{- with include "headwater.fileVariables" $given | trim }}
            {{- . | nindent 12 }}
            {{- end }}
            {{- with .variables | trim }}
            {{- . | nindent 12 }}
            {{- end }}
          ports:
            {{- if .port }}
            - {name: http, containerPort: {{ .port }}, protocol: TCP}
            {{- end }}
            - {name: metrics, containerPort: 9464, protocol: TCP}
          {{- .probes | nindent 10 }}
          {{- with .preStop }}
          lifecycle:
            # Until no Service leads here any more.
            preStop: {sleep: {seconds: {{ . }}}}
          {{- end }}
          resources:
            {{- toYaml .options.resources | nindent 12 }}
          securityContext:
            {{- include "headwater.containerSecurity" $root | nindent 12 }}
          volumeMounts:
            - {name: tmp, mountPath: /tmp}
            {{- if .backups }}
            - {name: backups, mountPath: /backups}
            {{- end }}
            {{- with include "headwater.fileMounts" $given | trim }}
            {{- . | nindent 12 }}
            {{- end }}
      volumes:
        - {name: tmp, emptyDir: {sizeLimit: 1Gi}}
        {{- if .backups }}
        - {name: backups, persistentVolumeClaim: {claimName: {{ $root.Values.backups.existingClaim | quote }}}}
        {{- end }}
        {{- with include "headwater.fileVolumes" $given | trim }}
        {{- . | nindent 8 }}
        {{- end }}
{{- if .options.autoscaling.enabled }}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata:
  name: {{ $name }}
  namespace: {{ $root.Release.Namespace }}
  labels:
    {{- include "headwater.commonLabels" $root | nindent 4 }}
    app.kubernetes.io/component: {{ .component }}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: {{ $name }}}
  minReplicas: {{ .options.autoscaling.minReplicas }}
  maxReplicas: {{ .options.autoscaling.maxReplicas }}
  metrics:
    - type: Resource
      resource:
        name: cpu
        target: {type: Utilization, averageUtilization: {{ .options.autoscaling.cpuPercent }}}
{{- end }}
{{- if $root.Values.podDisruptionBudgets }}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ $name }}
  namespace: {{ $root.Release.Namespace }}
  labels:
    {{- include "headwater.commonLabels" $root | nindent 4 }}
    app.kubernetes.io/component: {{ .component }}
spec:
  maxUnavailable: 1
  selector:
    matchLabels:
      {{- include "headwater.labels" . | nindent 6 }}
{{- end }}
{{- end }}

{{/* Asks Temporal whether this pod polls the queue. Not for liveness: without Temporal a restart helps nobody. */}}
{{- define "headwater.workerProbes" -}}
readinessProbe:
  exec: {command: {{ toJson (list "python" "-m" "workers.health" "--queue" .) }}}
  periodSeconds: 60
  timeoutSeconds: 15
  failureThreshold: 3
{{- end }}
