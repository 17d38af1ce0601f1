FROM python:3.12-slim
COPY . /source
RUN pip install --no-cache-dir "/source[cli,packages,postgres]" && rm -rf /source && useradd --create-home analyst \
    && mkdir /ledger /witness && chown analyst /ledger /witness
USER analyst
# The caches of numba and matplotlib need a folder that can be written.
ENV DPCAUSAL_WITNESS=/witness NUMBA_CACHE_DIR=/tmp MPLCONFIGDIR=/tmp
WORKDIR /ledger
ENTRYPOINT ["dpcausal"]
