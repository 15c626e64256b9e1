import type { Cluster } from '../../lib/config.ts'
import type { Storage } from '../../lib/proxmox/index.ts'
import type { Finding } from './event.ts'
import { type Fact, isSilentNode, known, type NodeFacts } from './facts.ts'
import { about, mebibytes, orFine, percent, ROLES, type Verdict } from './finding.ts'
import { judgeTemplate } from './template-verdict.ts'

/** A node's clock is told in whole seconds, and the way there takes a moment. */
const SKEW_MS = 10_000
const GROSS_SKEW_MS = 300_000
/** Seeds are about 60 KiB each; an upload is twice there for a moment. */
const LITTLE_ISO_BYTES = 512 * 1024 ** 2
const NO_ISO_BYTES = 16 * 1024 ** 2
const NO_DISK_BYTES = 1024 ** 3
const FULL_PERCENT = 10

/** What a node is judged by. */
export type Around = {
  cluster: Cluster
  /** Whether our token may list what is on a storage. */
  maySee(storage: string): boolean
  /** SDN.Use on the bridge; without it the bridge does not show. */
  mayUseBridge: boolean
}

/** Facts → findings about one node: is it there, in time, and does it have what proxies are made from? */
export function judgeNode(facts: NodeFacts, around: Around): Finding[] {
  const { node, state } = facts
  const say = about({ target: 'node', where: node, node })
  if (state === undefined) {
    const line = 'correct zones and images in the configuration'
    return [say.fail('NodeUnknown', 'the cluster has no node of this name', line)]
  }
  if (!state.online) {
    const text = 'is offline for the rest of the cluster: its proxies are unknown, and none is made there'
    return [say.fail('NodeOffline', text, 'pvecm status # on another node')]
  }
  if (isSilentNode(facts)) {
    const text = 'is online for the cluster, and its API does not answer in time'
    return [say.fail('NodeSilent', text, 'systemctl restart pveproxy pvedaemon # on the node')]
  }
  const findings = [
    ...judgeClock(facts, say),
    ...judgeBridge(facts, around, say),
    ...judgeStorages(facts, around, say),
    ...facts.templates.flatMap((template) => judgeTemplate(template, facts, around.cluster)),
  ]
  const images = facts.templates.map(({ image }) => image)
  return orFine(findings, say.fine(`clock, bridge, storages, images ${images.join(', ') || '(none)'}`))
}

function judgeClock({ clock }: NodeFacts, say: Verdict): Finding[] {
  if (!clock.known) return [say.untold('its clock', clock)]
  const { node, askedAt, answeredAt } = clock.value
  // Anywhere between the question and the answer is right, and so is the second that was cut off.
  const ahead = node - answeredAt
  const behind = askedAt - (node + 1000)
  const skew = Math.max(ahead, behind, 0)
  if (skew <= SKEW_MS) return []
  const text = `its clock is ${Math.round(skew / 1000)} s ${ahead > 0 ? 'ahead of' : 'behind'} ours`
  const line = 'chronyc tracking; systemctl restart chrony # on the node; if it is right, ours is wrong'
  return [skew > GROSS_SKEW_MS ? say.fail('ClockSkew', text, line) : say.warn('ClockSkew', text, line)]
}

function judgeBridge({ bridges }: NodeFacts, { cluster, mayUseBridge }: Around, say: Verdict): Finding[] {
  if (!bridges.known) return [say.untold('its bridges', bridges)]
  const bridge = bridges.value.find(({ name }) => name === cluster.bridge)
  if (!bridge) {
    // The privilege is a finding of its own.
    if (!mayUseBridge) return [say.note('NotSeen', `bridge ${cluster.bridge}: our token may not use it`)]
    const line = `cat /etc/network/interfaces # on the node; or correct bridge in the configuration`
    return [say.fail('BridgeMissing', `has no bridge ${cluster.bridge}`, line)]
  }
  if (bridge.active) return []
  return [
    say.fail('BridgeInactive', `bridge ${cluster.bridge} is not up`, `ifup ${cluster.bridge} # on the node`),
  ]
}

function judgeStorages({ storages }: NodeFacts, around: Around, say: Verdict): Finding[] {
  const { cluster } = around
  if (!storages.known) return [say.untold('its storages', storages)]
  const named = (id: string) => storages.value.find(({ storage }) => storage === id)
  const both = [
    { id: cluster.storage, content: 'images', key: 'storage', shared: cluster.storageShared },
    { id: cluster.isoStorage, content: 'iso', key: 'isoStorage', shared: cluster.isoStorageShared },
  ] as const
  const findings = both.flatMap(({ id, content, key, shared }) => {
    const storage = named(id)
    if (storage) return judgeStorage(storage, { content, key, shared }, say)
    if (!around.maySee(id))
      return [say.note('NotSeen', `storage ${id}: our token may not look into it`, ROLES)]
    const line = `pvesm status # on the node; or correct ${key} in the configuration`
    return [say.fail('StorageMissing', `has no storage ${id}`, line)]
  })
  return [...findings, ...judgeLinkedClones(storages, cluster, say)]
}

function judgeStorage(
  storage: Storage,
  { content, key, shared }: { content: 'images' | 'iso'; key: string; shared: boolean },
  say: Verdict,
): Finding[] {
  const { storage: id, totalBytes, availableBytes } = storage
  if (!storage.enabled)
    return [say.fail('StorageInactive', `storage ${id} is disabled`, `pvesm set ${id} --disable 0`)]
  if (!storage.active) {
    const line = `pvesm status --storage ${id} # on the node says why`
    return [
      say.fail('StorageInactive', `storage ${id} is not active: not mounted, or its server is away`, line),
    ]
  }
  const findings: Finding[] = []
  if (!storage.content.has(content)) {
    const wanted = [...storage.content, content].join(',')
    findings.push(
      say.fail(
        'ContentMissing',
        `storage ${id} does not offer ${content === 'iso' ? 'ISO images' : 'disk images'}`,
        `pvesm set ${id} --content ${wanted}`,
      ),
    )
  }
  if (shared !== storage.shared) {
    const text = `storage ${id} is ${storage.shared ? '' : 'not '}shared, and the configuration says otherwise`
    findings.push(say.fail('NotShared', text, `set ${key}Shared: ${storage.shared} in the configuration`))
  }
  const left = `${mebibytes(availableBytes)} of storage ${id} are left`
  const line = `pvesm list ${id} # on the node`
  const none = content === 'iso' ? NO_ISO_BYTES : NO_DISK_BYTES
  const isLittle =
    content === 'iso' ? availableBytes < LITTLE_ISO_BYTES : percent(availableBytes, totalBytes) < FULL_PERCENT
  if (availableBytes < none) findings.push(say.fail('NoSpace', left, line))
  else if (isLittle) findings.push(say.warn('NoSpace', left, line))
  return findings
}

/** Kinds of storage that cannot clone a base image by reference. Source: pve-storage Storage/*Plugin.pm volume_has_feature. */
const COPIES_ONLY: ReadonlySet<string> = new Set(['lvm', 'iscsi', 'iscsidirect'])

function judgeLinkedClones(storages: Fact<Storage[]>, { clone, storage }: Cluster, say: Verdict): Finding[] {
  const type = known(storages)?.find((one) => one.storage === storage)?.type
  if (clone !== 'linked' || type === undefined || !COPIES_ONLY.has(type)) return []
  const text = `storage ${storage} is of type ${type}, which cannot make linked clones`
  return [say.fail('LinkedCloneImpossible', text, 'set clone: full in the configuration')]
}
