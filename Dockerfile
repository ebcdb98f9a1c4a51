# One image for the API, the workers and the `headwater` command; what runs is the container's command.

# docker-compose.yml gives it, with its digest once deploy/pin-images.sh has looked that up.
ARG PYTHON_IMAGE=python:3.11.14-slim-bookworm
# The hosts' own, for their dump tools.
ARG MYSQL_IMAGE=mysql:9.7.1
ARG POSTGRES_IMAGE=postgres:18.6-bookworm

FROM ${PYTHON_IMAGE} AS build

WORKDIR /build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_ROOT_USER_ACTION=ignore

# Without pip inside, so that the environment can be copied as it is. Wheels only: there is no compiler here.
COPY requirements/runtime.lock requirements/runtime.lock
RUN python -m venv --without-pip /opt/headwater \
    && pip --python /opt/headwater/bin/python install --require-hashes --no-deps --only-binary :all: \
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


# Each engine's own dump tool, with the libraries that it was built against.
FROM ${MYSQL_IMAGE} AS mysql-tools

RUN mkdir -p /opt/mysql/bin /opt/mysql/lib \
    && for file in /usr/bin/mysqldump $(ldd /usr/bin/mysqldump | grep -o '/[^ ]*'); do cp -L "$file" /opt/mysql/lib/; done \
    && cp -L "$(ldd /usr/bin/mysqldump | grep -o '/[^ ]*ld-linux[^ ]*')" /opt/mysql/lib/loader \
    && printf '#!/bin/sh\nexec /opt/mysql/lib/loader --library-path /opt/mysql/lib /opt/mysql/lib/mysqldump "$@"\n' \
        > /opt/mysql/bin/mysqldump \
    && chmod 0755 /opt/mysql/bin/mysqldump \
    && /opt/mysql/bin/mysqldump --no-defaults --version


FROM ${PYTHON_IMAGE} AS mariadb-tools

RUN apt-get update \
    && apt-get install --yes --no-install-recommends mariadb-client \
    && mkdir -p /opt/mariadb/bin /opt/mariadb/lib \
    && for file in /usr/bin/mariadb-dump $(ldd /usr/bin/mariadb-dump | grep -o '/[^ ]*'); do \
        cp -L "$file" /opt/mariadb/lib/; done \
    && cp -L "$(ldd /usr/bin/mariadb-dump | grep -o '/[^ ]*ld-linux[^ ]*')" /opt/mariadb/lib/loader \
    && printf '#!/bin/sh\nexec /opt/mariadb/lib/loader --library-path /opt/mariadb/lib /opt/mariadb/lib/mariadb-dump "$@"\n' \
        > /opt/mariadb/bin/mariadb-dump \
    && chmod 0755 /opt/mariadb/bin/mariadb-dump \
    && /opt/mariadb/bin/mariadb-dump --no-defaults --version


FROM ${POSTGRES_IMAGE} AS postgres-tools

RUN mkdir -p /opt/postgresql/bin /opt/postgresql/lib \
    && for program in pg_dump pg_restore; do \
        for file in /usr/lib/postgresql/*/bin/$program $(ldd /usr/lib/postgresql/*/bin/$program | grep -o '/[^ ]*'); do \
            cp -L "$file" /opt/postgresql/lib/ || exit 1; done; \
        printf '#!/bin/sh\nexec /opt/postgresql/lib/loader --library-path /opt/postgresql/lib /opt/postgresql/lib/%s "$@"\n' \
            $program > /opt/postgresql/bin/$program; \
        done \
    && cp -L "$(ldd /usr/lib/postgresql/*/bin/pg_dump | grep -o '/[^ ]*ld-linux[^ ]*')" /opt/postgresql/lib/loader \
    && chmod 0755 /opt/postgresql/bin/pg_dump /opt/postgresql/bin/pg_restore \
    && /opt/postgresql/bin/pg_dump --version \
    && /opt/postgresql/bin/pg_restore --version


FROM ${PYTHON_IMAGE}

# Nothing here installs anything any more; nobody who gets in should be able to.
RUN python -m pip uninstall --yes --root-user-action=ignore pip setuptools wheel \
    && groupadd --system --gid 10001 headwater \
    && useradd --system --uid 10001 --gid headwater --home-dir /nonexistent --shell /usr/sbin/nologin headwater \
    # A new volume takes its owner from here.
    && mkdir -m 0700 /backups \
    && chown 10001:10001 /backups

COPY --from=build /opt/headwater /opt/headwater
COPY --from=mysql-tools /opt/mysql /opt/mysql
COPY --from=mariadb-tools /opt/mariadb /opt/mariadb
COPY --from=postgres-tools /opt/postgresql /opt/postgresql

# HEADWATER_API_HOST: inside a container the loopback interface is reached by nobody else.
ENV PATH=/opt/headwater/bin:/opt/postgresql/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    HEADWATER_API_HOST=0.0.0.0

WORKDIR /tmp
USER 10001:10001
EXPOSE 8000
STOPSIGNAL SIGTERM
CMD ["python", "-m", "app.http"]
