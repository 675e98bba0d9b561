"""Everything that touches the sigstore library: judging signatures, signing, trusted roots.

Sigstore is the engine and not the judge (trust 1): what it accepts is judged again by the rules in `rules`.
"""
