import { stringify } from 'yaml'
import { defaultWorld } from '../../sim/index.ts'

/** A configuration of the default world's cluster, with two sources of its token. */
export const tokenConfig = (over: Record<string, unknown> = {}): string => {
  const nodes = defaultWorld().nodes.map(({ name }) => name)
  return stringify({
    deployment: 'test',
    clusters: {
      lab: {
        endpoints: nodes.map((node) => ({
          url: `https://${node}:8006`,
          node,
          fingerprint: Array(32).fill('AA').join(':'),
        })),
        token: [{ file: 'token' }, { file: 'next-token' }],
        pool: 'egress',
        storage: 'vmdata',
        isoStorage: 'local',
        bridge: 'vmbr0',
        vmids: { from: 5000, to: 5999 },
        images: { 'debian-12': Object.fromEntries(nodes.map((node, index) => [node, 9000 + index])) },
        ...over,
      },
    },
    zones: { 'lab-1': { cluster: 'lab', nodes } },
    defaults: {
      size: { cores: 1, memoryMiB: 512, diskGiB: 4 },
      proxy: { protocol: 'http', port: 3128, allow: ['10.0.0.0/8'] },
    },
  })
}
