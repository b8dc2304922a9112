"""Certificates for servers of tests: an authority, what it signed for a server and a client, and a stranger."""

from __future__ import annotations

import subprocess
from pathlib import Path

_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")


def make_certificates(folder: Path) -> Path:
    """``ca``, ``server``, ``client``, and ``stranger``, an authority that signed nothing; each as .pem and .key."""
    for name in ("ca", "stranger"):
        _openssl(folder, "req", "-x509", *_KEY, "-keyout", f"{name}.key", "-out", f"{name}.pem", "-subj", f"/CN={name}")
    (folder / "san").write_text("subjectAltName=IP:127.0.0.1,DNS:localhost\n")
    for name in ("server", "client"):
        _openssl(folder, "req", "-new", *_KEY, "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}")
        sign = ("-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-extfile", "san", "-days", "2")
        _openssl(folder, "x509", "-req", "-in", f"{name}.csr", *sign, "-out", f"{name}.pem")
    return folder


def _openssl(folder: Path, *arguments: str) -> None:
    subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)
