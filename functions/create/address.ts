import ipaddr from 'ipaddr.js'
import { addressPartition, isOfAddress } from '../../lib/claims.ts'
import { next, type Outcome, wait } from '../../lib/outcome.ts'
import { pickAddress } from '../../lib/pick-address.ts'
import { type AgentInterface, isProxmoxError } from '../../lib/proxmox/index.ts'
import type { Moment, RowOf } from '../../lib/record.ts'
import { see } from '../../lib/sighting.ts'
import { madeAgain, startedAgain } from './gone.ts'
import type { Deps } from './steps.ts'

type Addressing = RowOf['address'] & Moment

const SHARED_CAP_SECONDS = 1800
const TURN_CAP_SECONDS = 24 * 3600

/**
 * Asks the guest agent for the address of our NIC, and claims it: no two proxies are told of at one address. One guest at
 * a time a node: a silent agent blocks one of three workers.
 */
export async function address(
  row: Addressing,
  deps: Pick<Deps, 'vms' | 'claims' | 'config' | 'cluster'>,
): Promise<Outcome> {
  const { vms, claims, config, cluster } = deps
  const { place, uid } = row
  if (!(await claims.takeAgentTurn(place.cluster, place.node, uid))) {
    // No time of the guest's own: while the node does not answer, each that is asked keeps the others waiting.
    const seconds = Math.min(15, Math.max(1, Math.round(row.waitedSeconds / 30)))
    return wait(`another guest of ${place.node} is being asked`, seconds, {
      capSeconds: TURN_CAP_SECONDS,
      why: 'agent',
    })
  }
  // As they were before the guest was asked: who stands still hereafter gives back none that was taken since.
  const earlier = row.address === undefined ? [] : (await claims.claimsOf(uid)).filter(isOfAddress)
  let interfaces: AgentInterface[]
  try {
    interfaces = await vms.interfaces(place)
  } catch (error) {
    if (!isProxmoxError(error, 'VmMissing', 'NotRunning', 'Forbidden')) throw error
    const sight = await see(row, vms, config.deployment)
    if (sight.kind === 'unclear') return sight.outcome
    if (sight.kind === 'gone') return madeAgain(row)
    // Ours and visible, so what is forbidden is the asking.
    if (error.code === 'Forbidden') throw error
    if (error.code === 'NotRunning') return startedAgain(row, sight.vm.node)
    return next('start', { place: { ...place, node: sight.vm.node } })
  } finally {
    await claims.freeAgentTurn(place.cluster, place.node, uid)
  }
  const found = pickAddress(interfaces, row.mac, cluster)
  if (found === undefined) return wait('the guest has no address yet', 2)
  const holder = await claims.takeAddress(place.cluster, found, uid)
  if (holder !== uid) {
    // A lease that went from one VM to another settles by itself: check asks the other, since both rows have the address.
    return wait(
      `the guest has the address ${found}, which is that of the proxy ${holder ?? 'that gave it back just now'}`,
      10,
      { capSeconds: SHARED_CAP_SECONDS, late: 'AddressTaken', patch: { address: found } },
    )
  }
  const now = addressPartition(place.cluster, found)
  for (const claim of earlier) if (claim.partition !== now) await claims.free(claim)
  const host = ipaddr.IPv6.isValid(found) ? `[${found}]` : found
  return next('verify', { address: found, endpoint: `http://${host}:${row.spec.proxy.port}` })
}
