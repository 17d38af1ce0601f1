FROM python:3.12-slim
COPY . /source
RUN pip install --no-cache-dir "/source[cli,packages,postgres]" && rm -rf /source && useradd --create-home analyst \
    && mkdir /ledger && chown analyst /ledger
USER analyst
# Numba's cache and matplotlib's need a folder that can be written, the witness one that stays.
ENV DPCAUSAL_WITNESS=/ledger/witness NUMBA_CACHE_DIR=/tmp MPLCONFIGDIR=/tmp
WORKDIR /ledger
ENTRYPOINT ["dpcausal"]
