import { type Provider, ProxmoxError, type Upid, type Vm } from '../lib/proxmox/index.ts'
import { readConfig } from '../lib/proxmox/vm-config.ts'

type Machine = Vm & { raw: Record<string, string> & { digest: string }; running: boolean }

/** A Proxmox in memory that does everything at once and nothing wrong: what is left to measure is ours. */
export function createInstantProxmox(nodes: readonly string[]): Provider & { vms: Map<number, Machine> } {
  const vms = new Map<number, Machine>()
  let tasks = 0

  const there = ({ vmid }: Vm): Machine => {
    const vm = vms.get(vmid)
    if (!vm) throw missing(vmid)
    return vm
  }
  const task = (node: string, type: string, id: string | number): Upid => {
    tasks += 1
    const pid = (tasks % 0xffff_ffff).toString(16).toUpperCase().padStart(8, '0')
    return `UPID:${node}:${pid}:00000001:69553E00:${type}:${id}:egress@pve!ctl:`
  }
  const never = (call: string) => () => {
    throw new Error(`the life of a proxy does not call ${call}`)
  }

  const status = async (at: Vm) => {
    const { running } = there(at)
    return { running, qmp: running ? 'running' : 'stopped' }
  }

  return {
    vms,
    nodesOnline: async () => [...nodes],
    nodes: async () => nodes.map((name) => ({ name, online: true })),
    isFree: async (vmid) => !vms.has(vmid),
    volumesOf: async () => [],
    async look({ vmid }) {
      const vm = vms.get(vmid)
      return vm ? { kind: 'vm', node: vm.node, config: readConfig(vm.raw) } : { kind: 'absent' }
    },
    task: async () => ({ running: false, ok: true, warnings: 0 }),
    async clone({ template, vmid, name, description }) {
      const mac = `BC:24:11:${[16, 8, 0].map((bits) => ((vmid >> bits) & 255).toString(16).padStart(2, '0')).join(':')}`
      const raw = {
        digest: '0'.repeat(40),
        name,
        description,
        agent: '1',
        boot: 'order=scsi0',
        cores: '1',
        memory: '512',
        net0: `virtio=${mac},bridge=vmbr0`,
        scsi0: `vmdata:${vmid}/vm-${vmid}-disk-0.qcow2,size=2G`,
      }
      vms.set(vmid, { node: template.node, vmid, raw, running: false })
      return task(template.node, 'qmclone', template.vmid)
    },
    upload: async ({ node, storage }) => task(node, 'imgcopy', storage),
    deleteVolume: async ({ node, storage }) => task(node, 'imgdel', storage),
    async configure(at, { set = {} }) {
      const { raw } = there(at)
      for (const [name, value] of Object.entries(set)) raw[name] = value === true ? '1' : String(value)
    },
    async resize(at, { disk, bytes }) {
      const { raw, node } = there(at)
      raw[disk] = String(raw[disk]).replace(/size=\w+/, `size=${bytes / 1024 ** 3}G`)
      return task(node, 'resize', at.vmid)
    },
    status,
    glance: status,
    async start(at) {
      there(at).running = true
      return task(at.node, 'qmstart', at.vmid)
    },
    async stop(at) {
      there(at).running = false
      return task(at.node, 'qmstop', at.vmid)
    },
    async destroy(at) {
      there(at)
      vms.delete(at.vmid)
      return task(at.node, 'qmdestroy', at.vmid)
    },
    async interfaces(at) {
      const [, mac = ''] = /=([0-9A-F:]{17})/i.exec(there(at).raw.net0 ?? '') ?? []
      const address = `10.0.${(at.vmid >> 8) & 255}.${at.vmid & 255}`
      return [{ name: 'eth0', mac: mac.toLowerCase(), addresses: [{ address, family: 'ipv4', prefix: 16 }] }]
    },
    locate: never('locate'),
    listVms: never('listVms'),
    templateAt: never('templateAt'),
    disks: never('disks'),
    isos: never('isos'),
    storages: never('storages'),
    cancel: never('cancel'),
    runningTasks: never('runningTasks'),
    version: never('version'),
    permissions: never('permissions'),
    clusterStatus: never('clusterStatus'),
    expiryOf: never('expiryOf'),
    hasPool: never('hasPool'),
    clockOf: never('clockOf'),
    bridgesOf: never('bridgesOf'),
    certificatesOf: never('certificatesOf'),
  }
}

const missing = (vmid: number) =>
  new ProxmoxError(`VM ${vmid} is not there`, {
    code: 'VmMissing',
    call: 'instant',
    vmid,
    sent: 'yes',
    ambiguous: false,
  })
