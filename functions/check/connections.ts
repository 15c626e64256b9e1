import type { Cluster } from '../../lib/config.ts'
import type { Proxmox } from '../../lib/proxmox/index.ts'
import type { Connect, Ports } from './ports.ts'

/** The clients of one round, each made for what it asks; all are closed at its end. */
export type Connections = {
  open(cluster: Cluster, use: Parameters<Connect>[1]): Proxmox
  close(): Promise<void>
}

export function createConnections({ connect }: Pick<Ports, 'connect'>): Connections {
  const opened: Proxmox[] = []
  return {
    open(cluster, use) {
      const proxmox = connect(cluster, use)
      opened.push(proxmox)
      return proxmox
    },
    async close() {
      await Promise.all(opened.map((proxmox) => proxmox.close()))
    },
  }
}
