# One image for the API, the workers and the `headwater` command; what runs is the container's command.

# docker-compose.yml gives it, with its digest once deploy/pin-images.sh has looked that up.
ARG PYTHON_IMAGE=python:3.11.14-slim-bookworm

FROM ${PYTHON_IMAGE} AS build

WORKDIR /build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_ROOT_USER_ACTION=ignore

# Without pip inside, so that the environment can be copied as it is. Wheels only: there is no compiler here.
COPY requirements/runtime.lock requirements/runtime.lock
RUN python -m venv --without-pip /opt/headwater \
    && pip --python /opt/headwater/bin/python install --require-hashes --only-binary :all: \
        -r requirements/runtime.lock

# The build backend and what it imports, from the same lock as everywhere else.
COPY requirements/dev.lock requirements/dev.lock
RUN awk '/^[a-z]/ { keep = /^(hatchling|packaging|pathspec|pluggy|tomlkit|trove-classifiers)==/ } keep' \
        requirements/dev.lock > requirements/build.lock \
    && pip install --require-hashes --no-deps --only-binary :all: -r requirements/build.lock

COPY pyproject.toml README.md LICENSE ./
COPY app app
COPY workflows workflows
COPY activities activities
COPY workers workers
RUN pip wheel --no-deps --no-build-isolation --wheel-dir dist . \
    && pip --python /opt/headwater/bin/python install --no-deps --no-index dist/*.whl \
    && /opt/headwater/bin/python -m compileall -q /opt/headwater/lib


FROM ${PYTHON_IMAGE}

# Nothing here installs anything any more; nobody who gets in should be able to.
RUN python -m pip uninstall --yes --root-user-action=ignore pip setuptools wheel \
    && groupadd --system --gid 10001 headwater \
    && useradd --system --uid 10001 --gid headwater --home-dir /nonexistent --shell /usr/sbin/nologin headwater \
    # A new volume takes its owner from here.
    && mkdir -m 0700 /backups \
    && chown 10001:10001 /backups

COPY --from=build /opt/headwater /opt/headwater

# HEADWATER_API_HOST: inside a container the loopback interface is reached by nobody else.
ENV PATH=/opt/headwater/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    HEADWATER_API_HOST=0.0.0.0

WORKDIR /tmp
USER 10001:10001
EXPOSE 8000
STOPSIGNAL SIGTERM
CMD ["python", "-m", "app.http"]
