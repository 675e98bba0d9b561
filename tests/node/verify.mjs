// Judges bundles with npm's Sigstore verifier; one verdict a job on stdout, a refusal being no failure of this program.
//
// stdin: {trustedRoot, jobs: [{bundle, identity: regexp, issuer}]}; stdout: [{accepted, code?, message?}].
import { bundleFromJSON } from '@sigstore/bundle';
import { TrustedRoot } from '@sigstore/protobuf-specs';
import { Verifier, toSignedEntity, toTrustMaterial } from '@sigstore/verify';
import { text } from 'node:stream/consumers';

const { trustedRoot, jobs } = JSON.parse(await text(process.stdin));
const verifier = new Verifier(toTrustMaterial(TrustedRoot.fromJSON(trustedRoot)), {
  ctlogThreshold: 1,
  tlogThreshold: 1,
  timestampThreshold: 1,
});
const verdicts = jobs.map(({ bundle, identity, issuer }) => {
  try {
    verifier.verify(toSignedEntity(bundleFromJSON(bundle)), {
      subjectAlternativeName: identity,
      extensions: { issuer },
    });
    return { accepted: true };
  } catch (err) {
    return { accepted: false, code: err.code ?? err.name, message: err.message };
  }
});
process.stdout.write(JSON.stringify(verdicts));
