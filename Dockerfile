FROM python:3.11-slim-bookworm

ENV PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    PIP_DISABLE_PIP_VERSION_CHECK=1 \
    AICR_EVIDENCE_HOST=0.0.0.0 \
    AICR_EVIDENCE_ARCHIVE=/var/lib/aicr-evidence/archive \
    AICR_EVIDENCE_DATABASE_URL=sqlite:////var/lib/aicr-evidence/evidence.db \
    AICR_EVIDENCE_ALLOWLIST=/etc/aicr-evidence/allowlist.yaml

WORKDIR /srv/aicr-evidence
COPY requirements/base.lock requirements/base.lock
RUN pip install --no-cache-dir --require-hashes -r requirements/base.lock
COPY pyproject.toml README.md LICENSE ./
COPY app app
COPY migrations migrations
RUN pip install --no-cache-dir --no-deps --no-build-isolation . \
    && useradd --system --uid 10001 --home-dir /var/lib/aicr-evidence --create-home aicr \
    && install -d -o aicr /var/lib/aicr-evidence/archive
COPY allowlist.yaml /etc/aicr-evidence/allowlist.yaml
COPY evidence evidence

USER 10001
VOLUME ["/var/lib/aicr-evidence"]
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8080/ready', timeout=2)"]
ENTRYPOINT ["aicr-evidence"]
CMD ["serve"]
