import { done, fail, type Outcome, wait } from '../../lib/outcome.ts'
import type { Moment, RowOf } from '../../lib/record.ts'
import { see } from '../../lib/sighting.ts'
import { madeAgain, startedAgain } from './gone.ts'
import type { Deps } from './steps.ts'

/** Looks through the proxy as its users will; and at its VM, while the proxy is silent. */
export async function verify(
  row: RowOf['verify'] & Moment,
  deps: Pick<Deps, 'vms' | 'config' | 'probe' | 'password' | 'signal'>,
): Promise<Outcome> {
  const { config, probe, password, signal } = deps
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
  if (result.kind === 'silent') return silent(row, result.detail, deps)
  return fail('ProbeRefused', `the proxy at ${row.endpoint} turns us away: ${result.detail}`)
}

async function silent(
  row: RowOf['verify'] & Moment,
  detail: string,
  { vms, config }: Pick<Deps, 'vms' | 'config'>,
): Promise<Outcome> {
  const sight = await see(row, vms, config.deployment)
  if (sight.kind === 'unclear') return sight.outcome
  if (sight.kind === 'gone') return madeAgain(row)
  if ((await vms.status(sight.vm)).qmp === 'stopped') return startedAgain(row, sight.vm.node)
  return wait(`the proxy does not answer: ${detail}`, Math.min(5, Math.max(1, 1 + row.waitedSeconds / 5)))
}
