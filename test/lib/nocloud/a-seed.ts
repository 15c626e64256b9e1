import type { Seed } from '../../../lib/nocloud/index.ts'

/** An ordinary seed, with whatever a test wants otherwise. */
export function aSeed(changes: Partial<Seed> = {}): Seed {
  return {
    instanceId: '0190f5c2-8f7e-7cc1-9b7e-2d1f6a0c4e11-g1',
    hostname: 'egress-crawler-3f9a1c',
    mac: '02:AB:cd:00:01:02',
    proxy: { port: 3128, allow: ['127.0.0.1', '10.0.0.0/8', '2001:db8::/32'] },
    probeFrom: ['192.0.2.0/24'],
    ...changes,
  }
}

/** The error a call throws, for a look at all of it. */
export function thrownBy(call: () => unknown): unknown {
  try {
    call()
  } catch (error) {
    return error
  }
  return undefined
}
