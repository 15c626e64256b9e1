import { stringify } from 'yaml'

export const NODES = ['pve1', 'pve2', 'pve3']

/** A configuration for an instant Proxmox: nothing to boot, nothing to probe, no end of places to clone. */
export const instantConfig = () =>
  stringify({
    deployment: 'bench',
    clusters: {
      lab: {
        endpoints: NODES.map((node) => ({
          url: `https://${node}:8006`,
          node,
          fingerprint: Array(32).fill('AA').join(':'),
        })),
        token: { file: 'token' },
        storage: 'vmdata',
        isoStorage: 'local',
        bridge: 'vmbr0',
        vmids: { from: 10_000, to: 99_999 },
        images: { 'debian-12': Object.fromEntries(NODES.map((node, index) => [node, 9000 + index])) },
      },
    },
    zones: { 'lab-1': { cluster: 'lab', nodes: NODES } },
    limits: { clonesPerStorage: 1000 },
    defaults: {
      size: { cores: 1, memoryMiB: 512, diskGiB: 4 },
      proxy: { protocol: 'http', port: 3128, allow: ['10.0.0.0/8'] },
    },
    verify: { probe: 'none' },
    timings: { maxClockSkewSeconds: 0, bootSeconds: 0 },
    parameters: { file: 'parameters.yml' },
  })

export const requested = (uid: string) => ({
  type: 'ProxyRequested',
  uid,
  name: uid,
  spec: { zone: 'lab-1', image: 'debian-12' },
})
export const unwanted = (uid: string) => ({ type: 'ProxyDeletionRequested', uid })
