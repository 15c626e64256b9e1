import { resolve } from 'node:path'
import { stringify } from 'yaml'
import { HOST_SEEN_BY_GUESTS } from '../local/host-seen-by-guests.ts'
import type { GuestKind, SimulatedCluster } from '../local/simulated-cluster.ts'

/** A configuration that fits: save it, and `egress up --config` drives this cluster. */
export function fittingConfig(
  { endpoints, admin, tokenFiles }: SimulatedCluster,
  guests: GuestKind = 'loopback',
): string {
  const nodes = endpoints.map(({ node }) => node)
  const images = Object.fromEntries(nodes.map((node, index) => [node, 9000 + index]))
  // Who comes to a real guest comes, as it sees it, from one address.
  const clients = guests === 'qemu' ? [`${HOST_SEEN_BY_GUESTS}/32`] : ['127.0.0.0/8']
  const config = {
    deployment: 'byhand',
    clusters: {
      lab: {
        endpoints,
        token: tokenFiles.map((file) => ({ file: resolve(file) })),
        pool: 'egress',
        storage: 'vmdata',
        isoStorage: 'local',
        bridge: 'vmbr0',
        addressRanges: ['127.0.0.0/8'],
        vmids: { from: 100, to: 999 },
        images: { 'debian-12': images },
      },
    },
    zones: { 'lab-1': { cluster: 'lab', nodes } },
    defaults: {
      size: { cores: 1, memoryMiB: 512, diskGiB: 4 },
      proxy: { protocol: 'http', port: 8080, allow: clients },
    },
    verify: { probe: 'tcp', probeFrom: clients },
    timings: {
      functionTimeoutSeconds: 20,
      maxClockSkewSeconds: 0,
      bootSeconds: guests === 'qemu' ? 20 : 3,
      settleSeconds: 30,
    },
    parameters: { file: 'parameters.yml' },
  }
  return `# door for scripts: ${admin} (egress sim vms --admin ${admin})\n${stringify(config)}`
}
