// Signs what stdin asks for with npm's Sigstore client; one JSON bundle a job on stdout.
//
// stdin: {signingConfig, jobs: [{payload: base64, payloadType}]}. The identity comes from the environment, as in a CI
// job: ACTIONS_ID_TOKEN_REQUEST_URL and _TOKEN, or SIGSTORE_ID_TOKEN.
import { bundleToJSON } from '@sigstore/bundle';
import { SigningConfig } from '@sigstore/protobuf-specs';
import { CIContextProvider, bundleBuilderFromSigningConfig } from '@sigstore/sign';
import { text } from 'node:stream/consumers';

const { signingConfig, jobs } = JSON.parse(await text(process.stdin));
const builder = bundleBuilderFromSigningConfig({
  signingConfig: SigningConfig.fromJSON(signingConfig),
  identityProvider: new CIContextProvider('sigstore'),
  bundleType: 'dsseEnvelope',
  fetchOptions: { timeout: 20000, retry: { retries: 0 } },
});
const bundles = [];
for (const { payload, payloadType } of jobs) {
  const bundle = await builder.create({ data: Buffer.from(payload, 'base64'), type: payloadType });
  bundles.push(bundleToJSON(bundle));
}
process.stdout.write(JSON.stringify(bundles));
