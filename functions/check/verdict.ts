import { grantCommand } from '../../lib/grant.ts'
import { judgeEndpoint } from './endpoint-verdict.ts'
import type { Finding } from './event.ts'
import { type ClusterFacts, known, type NodeFacts } from './facts.ts'
import { about, orFine, ROLES } from './finding.ts'
import { missingPrivileges, templateVmids, wantedPrivileges } from './privileges.ts'
import { judgeToken } from './token-verdict.ts'

/** So few numbers left that the next rush of requests waits for some. */
const FEW_VMIDS = 10

/** Facts → findings about a cluster as a whole, its tokens and its endpoints. Nodes' facts tell what kind of network it is. */
export function judgeCluster(facts: ClusterFacts, nodes: readonly NodeFacts[], now: number): Finding[] {
  const answering = facts.endpoints.some(({ version }) => version.known)
  return [
    ...facts.endpoints.flatMap((endpoint) => judgeEndpoint(endpoint, now)),
    ...facts.tokens.flatMap((token, index) => judgeToken(token, index, facts, now)),
    ...(answering ? judgeWhole(facts, nodes) : [noEndpoint(facts)]),
  ]
}

function noEndpoint({ name }: ClusterFacts): Finding {
  const text = 'no endpoint answers as it should, so nothing else of this cluster could be looked at'
  return about({ target: 'cluster', where: name }).fail('NoEndpoint', text)
}

function judgeWhole(facts: ClusterFacts, nodes: readonly NodeFacts[]): Finding[] {
  const { name, cluster, endpoints } = facts
  const say = about({ target: 'cluster', where: name })
  const findings = [...judgePool(facts), ...judgePrivileges(facts, nodes), ...judgeRanges(facts)]
  const versions = new Set(endpoints.flatMap(({ version }) => known(version)?.version ?? []))
  return orFine(
    findings,
    say.fine(`Proxmox VE ${[...versions].join(', ')}, pool ${cluster.pool ?? '(none)'}`),
  )
}

function judgePool({ name, cluster, pool }: ClusterFacts): Finding[] {
  const say = about({ target: 'cluster', where: name })
  if (!pool || (pool.known && pool.value)) return []
  if (!pool.known) return [say.untold(`pool ${cluster.pool}`, pool)]
  return [
    say.fail(
      'PoolMissing',
      `there is no pool ${cluster.pool}, so nothing can be cloned`,
      `pveum pool add ${cluster.pool}`,
    ),
  ]
}

/** The privileges of the client's own calls, for every version that is there. */
function judgePrivileges(facts: ClusterFacts, nodes: readonly NodeFacts[]): Finding[] {
  const { name, cluster, privileges, tokens } = facts
  const say = about({ target: 'cluster', where: name })
  const wanted = wantedPrivileges(majorsOf(facts), facts)
  const estate = {
    pool: cluster.pool,
    storage: cluster.storage,
    isoStorage: cluster.isoStorage,
    templates: templateVmids(cluster),
    tokenId: tokens.find(({ accepted }) => accepted?.known)?.id,
  }
  const isVnet = nodes.some(({ bridges }) =>
    known(bridges)?.some(({ name: bridge, vnet }) => bridge === cluster.bridge && vnet),
  )
  const missing = missingPrivileges(wanted, privileges)
  const cloudInit = nodes.some(hasCloudInitDrive)
  const needed = missing.filter(({ for: use, path }) => {
    // A vnet's zone is not in the configuration; whoever may not use a vnet does not see it, and that is a node's finding.
    if (isVnet && path.startsWith('/sdn/')) return false
    return use === 'life' || (use === 'cloudInit' && cloudInit)
  })
  const optional = missing.filter(({ for: use }) => use === 'audit')
  const findings = [
    ...needed.map(({ privilege, path, for: use }) => {
      const why =
        use === 'cloudInit' ? ', and a template carries a cloud-init drive that each clone must lose' : ''
      const text = `our token lacks ${privilege} on ${path}${why}`
      return say.fail('PrivilegeMissing', text, grantCommand({ privilege, path }, estate))
    }),
    ...[...Map.groupBy(optional, ({ privilege }) => privilege)].map(([privilege, where]) => {
      const paths = where.map(({ path }) => path).join(', ')
      return say.note('NotSeen', `only for looking around, and not granted: ${privilege} on ${paths}`, ROLES)
    }),
  ]
  const unread = [...privileges.values()].find((fact) => !fact.known)
  return unread && !unread.known ? [...findings, say.untold('privileges', unread)] : findings
}

const hasCloudInitDrive = ({ templates }: NodeFacts) =>
  templates.some(({ look }) => {
    const template = known(look)
    return template && 'config' in template && template.config.cdroms.some(({ cloudInit }) => cloudInit)
  })

/** Each major version that an endpoint showed. */
export const majorsOf = ({ endpoints }: Pick<ClusterFacts, 'endpoints'>): number[] => [
  ...new Set(endpoints.flatMap(({ version }) => known(version)?.major ?? [])),
]

/** How many numbers are left to give out. What another token's VMs hold may not show, so it is at most so many. */
function judgeRanges({ name, ranges, listed, claimed }: ClusterFacts): Finding[] {
  const say = about({ target: 'cluster', where: name })
  if (!listed.known) return [say.untold('its VMs', listed)]
  const taken = new Set([...listed.value.map(({ vmid }) => vmid), ...claimed])
  return ranges.flatMap(({ whose, from, to }) => {
    const size = to - from + 1
    const free = size - [...taken].filter((vmid) => vmid >= from && vmid <= to).length
    const text = `${free} of ${size} VMIDs in ${from} to ${to} (${whose}) ${free === 1 ? 'is' : 'are'} free`
    const line = `widen vmids of ${whose} in the configuration, or delete proxies`
    if (free <= 0) return [say.fail('VmidsShort', text, line)]
    return free < Math.min(FEW_VMIDS, size / 2) ? [say.warn('VmidsShort', text, line)] : []
  })
}
