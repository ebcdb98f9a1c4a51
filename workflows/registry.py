"""Every workflow, by the queue that serves it.

They are not in the package's `__init__`: the sandbox would load all of it for each run of a workflow.
"""

from workflows.apply_access import ApplyAccessWorkflow
from workflows.apply_blueprint import ApplyBlueprintWorkflow
from workflows.apply_credentials import ApplyCredentialsWorkflow
from workflows.apply_limits import ApplyLimitsWorkflow
from workflows.backup_database import BackupDatabaseWorkflow
from workflows.close_remnant import CloseRemnantWorkflow
from workflows.close_usage import CloseUsageWorkflow
from workflows.delete_database import DeleteDatabaseWorkflow
from workflows.deliver_webhook import DeliverWebhookWorkflow
from workflows.enforce_quotas import EnforceQuotasWorkflow
from workflows.prove_backup import ProveBackupWorkflow
from workflows.provision_database import ProvisionDatabaseWorkflow
from workflows.reclaim_space import ReclaimSpaceWorkflow
from workflows.reconcile import ReconcileWorkflow
from workflows.refill_pool import RefillPoolWorkflow
from workflows.remove_remnant import RemoveRemnantWorkflow
from workflows.restore_database import RestoreDatabaseWorkflow
from workflows.sweep import SweepWorkflow

CONTROL_WORKFLOWS = (
    DeleteDatabaseWorkflow,
    ApplyLimitsWorkflow,
    ApplyAccessWorkflow,
    ApplyCredentialsWorkflow,
    RemoveRemnantWorkflow,
    CloseRemnantWorkflow,
    RefillPoolWorkflow,
    SweepWorkflow,
    ReconcileWorkflow,
    ApplyBlueprintWorkflow,
    EnforceQuotasWorkflow,
    ReclaimSpaceWorkflow,
    CloseUsageWorkflow,
    RestoreDatabaseWorkflow,
)
"""On the control queue."""
ENGINE_WORKFLOWS = (ProvisionDatabaseWorkflow,)
"""On the engine queue of each region."""
BACKUP_WORKFLOWS = (BackupDatabaseWorkflow, ProveBackupWorkflow)
"""On the backup queue of each region."""
WEBHOOK_WORKFLOWS = (DeliverWebhookWorkflow,)
"""On the webhook queue."""
