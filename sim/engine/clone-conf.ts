import type { CloneRun } from './clone-data.ts'
import { parseNet, printNet, randomMac, randomUuid } from './net.ts'
import type { Conf, Vm } from './state.ts'

/** The config of the new VM but for its drives: all of the source, and new what must be unique. */
export function freshConf({ cluster, data }: CloneRun, source: Conf): Conf {
  const conf: Conf = {}
  for (const [key, value] of Object.entries(source)) {
    if (/^(?:unused\d+|template|lock|snaptime|parent|snapstate|runningmachine|vmstate)$/.test(key)) continue
    conf[key] = /^net\d+$/.test(key)
      ? printNet({ ...withoutMac(value) }, () => randomMac(cluster.random))
      : value
  }
  conf.name = data.name ?? `Copy-of-VM-${source.name ?? data.vmid}`
  if (data.description !== undefined) conf.description = data.description.trimEnd()
  conf.smbios1 = newSmbios(String(source.smbios1 ?? ''), randomUuid(cluster.random))
  if (source.vmgenid !== undefined) conf.vmgenid = randomUuid(cluster.random)
  return conf
}

function withoutMac(value: string | number) {
  const { model, options } = parseNet(value)
  return { model, options }
}

function newSmbios(text: string, uuid: string): string {
  const parts = text.split(',').filter((part) => part !== '' && !part.startsWith('uuid='))
  return [...parts, `uuid=${uuid}`].sort().join(',')
}

export function write({ cluster, node, data }: CloneRun, config: Conf): Vm {
  const vm: Vm = {
    vmid: data.newid,
    node,
    config,
    pending: { set: {}, delete: [] },
    snapshots: {},
    container: false,
    boots: 0,
  }
  cluster.state.vms[data.newid] = vm
  return vm
}
