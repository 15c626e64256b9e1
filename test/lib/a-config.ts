import { stringify } from 'yaml'
import { type Config, parseConfig } from '../../lib/config.ts'

/** A small configuration as its file would say it, with whatever a test wants otherwise at its top level. */
export const aDocument = (changes: Record<string, unknown> = {}) => ({
  deployment: 'test',
  clusters: {
    lab: {
      endpoints: [
        { url: 'https://pve1:8006', node: 'pve1', fingerprint: Array(32).fill('AA').join(':') },
        { url: 'https://pve2:8006', node: 'pve2', fingerprint: Array(32).fill('AB').join(':') },
      ],
      token: { file: 'token' },
      pool: 'egress',
      storage: 'vmdata',
      isoStorage: 'local',
      bridge: 'vmbr0',
      vmids: { from: 5000, to: 5999 },
      images: { 'debian-12': { pve1: 9000, pve2: 9001 }, 'ubuntu-24.04': { pve2: 9101 } },
    },
  },
  zones: {
    'lab-1': { cluster: 'lab', nodes: ['pve1', 'pve2'] },
    'lab-2': { cluster: 'lab', nodes: ['pve1'] },
  },
  defaults: {
    size: { cores: 1, memoryMiB: 512, diskGiB: 4 },
    proxy: { protocol: 'http', port: 3128, allow: ['10.0.0.0/8'] },
  },
  timings: { maxClockSkewSeconds: 0 },
  parameters: { file: 'parameters.yml' },
  ...changes,
})

export const aConfig = (changes: Record<string, unknown> = {}): Config =>
  parseConfig(stringify(aDocument(changes)), '/etc/egress/test.yml')
