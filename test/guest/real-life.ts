import { pickAddress } from '../../lib/pick-address.ts'
import { type ProbeResult, probe } from '../../lib/probe.ts'
import type { Row } from '../../lib/record.ts'
import type { AgentInterface, GuestSpec } from '../../sim/index.ts'
import { reachable } from '../../sim/qemu/interfaces.ts'
import type { Machine } from '../../sim/qemu/machine.ts'
import { atStep, type Lab, openLab, settled } from '../lab/lab.ts'

/** The life of one proxy by the real functions, of which a test boots the machine itself. */
export type RealLife = {
  lab: Lab
  /** Asks for the proxy and runs its life up to `address`; gives what its machine is switched on with, seed and all. */
  untilPowerOn(request?: Record<string, unknown>): Promise<GuestSpec>
  /** Lets the `address` step read what the real agent says, and gives the row with the address found. */
  readAddress(machine: Machine, forwardedTo: string): Promise<Row>
  /** Probes for real until the result is of that kind, lets `verify` see it, and gives the row at rest. */
  verified(kind: ProbeResult['kind']): Promise<Row>
  /** Goes on with a guest that says nothing, and gives the row at rest. */
  withoutAgent(): Promise<Row>
}

const uid = 'alpha'
/** Where a guest of QEMU's user network sees its host, and whoever comes in by a forwarded port. */
export const host = '10.0.2.2'

export async function openRealLife({
  passwords = {},
  page,
}: {
  passwords?: Record<string, string>
  /** Port of a page on this host. */
  page: number
}): Promise<RealLife> {
  let poweredOn: GuestSpec | undefined
  let told: AgentInterface[] | undefined
  let seen: ProbeResult = { kind: 'silent', detail: 'nobody has looked' }
  const lab = await openLab({
    passwords,
    guests: async (spec) => {
      poweredOn = spec
      return { interfaces: () => told, close: async () => {} }
    },
    // The clock of this life is virtual, so whoever waits for a socket does so before.
    interpose: (outside) => ({
      ...outside,
      surroundings: { ...outside.surroundings, probe: { http: async () => seen, tcp: async () => seen } },
    }),
    config: {
      verify: { probe: 'http', probeUrl: `http://${host}:${page}/`, probeFrom: [`${host}/32`] },
    },
  })

  return {
    lab,
    async untilPowerOn(request = {}) {
      poweredOn = undefined
      told = undefined
      lab.request(uid, request)
      await lab.run(() => poweredOn !== undefined && lab.row(uid)?.step === 'address')
      if (!poweredOn) throw new Error('no machine was switched on')
      return poweredOn
    },

    async readAddress(machine, forwardedTo) {
      await machine.agentUp
      let interfaces: AgentInterface[] = []
      await until('the agent tells an address', async () => {
        const answer = await machine.agent.ask('guest-network-get-interfaces')
        interfaces = answer && 'return' in answer ? (answer.return as AgentInterface[]) : []
        const mac = lab.row(uid)?.mac ?? ''
        const read = interfaces.map(({ 'hardware-address': of, 'ip-addresses': addresses = [] }) => ({
          ...(of && { mac: of }),
          addresses: addresses.map(({ 'ip-address': address }) => ({ address })),
        }))
        return pickAddress(read, mac, { ipv6: false }) !== undefined
      })
      told = reachable(interfaces, forwardedTo)
      return atStep(lab, uid, 'verify')
    },

    async verified(kind) {
      const { address = '', spec } = lab.row(uid) ?? {}
      const { port = 0, auth } = spec?.proxy ?? {}
      const password = auth && passwords[auth.passwordParameter]
      await until(`a probe that finds it ${kind}`, async () => {
        seen = await probe.http({
          host: address,
          port,
          url: lab.config.verify.probeUrl ?? '',
          signal: AbortSignal.timeout(20_000),
          ...(auth && password && { credentials: { username: auth.username, password } }),
        })
        return seen.kind === kind
      })
      return settled(lab, uid)
    },

    withoutAgent: () => settled(lab, uid),
  }
}

/** Looks again and again; the test's own limit ends it. */
export async function until(what: string, holds: () => Promise<boolean>): Promise<void> {
  const startMs = Date.now()
  while (!(await holds())) {
    if (Date.now() - startMs > 850_000) throw new Error(`not reached: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 500))
  }
}
