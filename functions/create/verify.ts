import { done, fail, type Outcome, wait } from '../../lib/outcome.ts'
import type { Moment, RowOf } from '../../lib/record.ts'
import type { Deps } from './steps.ts'

/** Looks through the proxy as its users will. */
export async function verify(
  row: RowOf['verify'] & Moment,
  { config, probe, password, signal }: Pick<Deps, 'config' | 'probe' | 'password' | 'signal'>,
): Promise<Outcome> {
  const { probe: kind, probeUrl } = config.verify
  if (kind === 'none') return done()
  const { port, auth } = row.spec.proxy
  const secret = auth && (await password(auth.passwordParameter))
  const credentials = auth && secret !== undefined ? { username: auth.username, password: secret } : undefined
  const result = await probe[kind]({
    host: row.address,
    port,
    url: probeUrl,
    signal,
    ...(credentials && { credentials }),
  })
  if (result.kind === 'answers') return done()
  if (result.kind === 'silent')
    return wait(`the proxy does not answer: ${result.detail}`, Math.min(5, 1 + row.waitedSeconds / 5))
  return fail('ProbeRefused', `the proxy at ${row.endpoint} turns us away: ${result.detail}`)
}
