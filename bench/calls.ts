import { defaultWorld } from '../sim/index.ts'
import { feed } from './feed.ts'
import { createFloor } from './floor.ts'
import { type Installation, openInstallation, type Request } from './installation.ts'
import { CAREFUL, carefulTotal } from './least.ts'
import { EXACT, type Part, type Sheet } from './report.ts'
import { sum } from './statistics.ts'

type World = ReturnType<typeof defaultWorld>
type Life = { create: Request[]; remove: Request[] }
const UID = 'proxy-0'

/** Requests to Proxmox of one life, made and deleted, against the fewest there can be. */
export const calls: Part = {
  name: 'calls',
  about: 'requests to Proxmox of one life, by endpoint, and the least there can be',
  async run(say) {
    say('a life of ours, and of the floor')
    const ours = await lifeOfOurs(defaultWorld())
    const floor = await lifeOfFloor(defaultWorld())
    say('the same among 1,000 VMs of others, and with Sys.Audit')
    const crowded = await lifeOfOurs(withStrangers(defaultWorld(), 1000))
    const audited = await lifeOfOurs(withAudit(defaultWorld()))
    const [mine, bare] = [withoutWaits(ours), withoutWaits(floor)]
    const agent = [...ours.create].filter(({ path }) => path.includes('/agent/'))
    return {
      sheets: [
        byEndpoint(ours, floor),
        {
          title: 'Requests of a life',
          head: ['', 'to Ready', 'to Deleted', 'of these waits'],
          rows: [
            ['ours', ours.create.length, ours.remove.length, total(ours) - mine],
            [
              'ours, 1,000 VMs of others in the cluster',
              ...lengths(crowded),
              total(crowded) - withoutWaits(crowded),
            ],
            [
              'ours, with a token that has Sys.Audit',
              ...lengths(audited),
              total(audited) - withoutWaits(audited),
            ],
            ['floor', ...lengths(floor), total(floor) - bare],
          ],
        },
        {
          title: 'The least for steps that anyone may repeat at any time (bench/least.ts)',
          head: ['step', 'requests', 'which, and why'],
          rows: CAREFUL.map(({ step, requests, why }) => [step, requests, why]),
        },
      ],
      figures: [
        { name: 'requests without waits', value: mine, unit: 'requests', noise: 0 },
        { name: 'requests with waits', value: total(ours), unit: 'requests', noise: EXACT },
        { name: 'ours / least of a script that nothing happens to', value: mine / bare, unit: '', noise: 0 },
        {
          name: 'ours / least of steps that may be repeated',
          value: mine / carefulTotal,
          unit: '',
          noise: 0,
          aim: 1.3,
        },
        {
          name: 'with 1,000 VMs of others / without',
          value: withoutWaits(crowded) / mine,
          unit: '',
          noise: 0,
          aim: 1,
        },
        { name: 'questions to the guest agent', value: agent.length, unit: 'requests', noise: 0, aim: 1 },
      ],
      notes: [
        'A wait asks how a task stands. What the floor does without waits is the least of a script that knows all: bench/floor.ts.',
      ],
    }
  },
}

const isWait = ({ path }: Request) => /\/tasks\/[^/]+\/status$/.test(path)
const all = ({ create, remove }: Life) => [...create, ...remove]
const total = (life: Life) => all(life).length
const withoutWaits = (life: Life) => all(life).filter((request) => !isWait(request)).length
const lengths = ({ create, remove }: Life) => [create.length, remove.length] as const

async function lifeOfOurs(world: World): Promise<Life> {
  const installation = await openInstallation({ world })
  const { lab, requests, publishedAt } = installation
  try {
    lab.request(UID)
    await feed(installation, () => publishedAt.has(`ProxyReady ${UID}`))
    const create = cut(installation)
    lab.remove(UID)
    await feed(installation, () => publishedAt.has(`ProxyDeleted ${UID}`))
    return { create, remove: [...requests] }
  } finally {
    await installation.close()
  }
}

async function lifeOfFloor(world: World): Promise<Life> {
  const installation = await openInstallation({ world })
  const { lab, requests } = installation
  try {
    const floor = createFloor(installation)
    const made = await lab.clock.until(floor.create(UID))
    const create = cut(installation)
    await lab.clock.until(floor.remove(made))
    return { create, remove: [...requests] }
  } finally {
    await installation.close()
  }
}

/** What was sent so far; counting starts anew. */
const cut = ({ requests }: Installation) => requests.splice(0)

function withStrangers(world: World, count: number): World {
  const strangers = Array.from({ length: count }, (_, index) => ({
    vmid: 20_000 + index,
    node: `pve${1 + (index % 3)}`,
    config: { name: `theirs-${index}`, memory: '512' },
  }))
  return { ...world, vms: [...(world.vms ?? []), ...strangers] }
}

/** A token that may ask whether the cluster is quorate. */
function withAudit(world: World): World {
  const may = ['egress@pve', 'egress@pve!ctl'].map((ugid) => ({
    path: '/',
    ugid,
    role: 'BenchAudit',
    propagate: false,
  }))
  return {
    ...world,
    roles: { ...world.roles, BenchAudit: ['Sys.Audit'] },
    acl: [...(world.acl ?? []), ...may],
  }
}

function byEndpoint(ours: Life, floor: Life): Sheet {
  const of = (requests: Request[]) => {
    const counts = new Map<string, number>()
    for (const request of requests) counts.set(endpoint(request), (counts.get(endpoint(request)) ?? 0) + 1)
    return counts
  }
  const counts = [ours.create, floor.create, ours.remove, floor.remove].map(of)
  const names = [...new Set(counts.flatMap((one) => [...one.keys()]))].sort()
  const rows = names.map((name) => [name, ...counts.map((one) => one.get(name) ?? 0)])
  return {
    title: 'By endpoint',
    head: ['', 'to Ready: ours', 'floor', 'to Deleted: ours', 'floor'],
    rows: [...rows, ['all', ...counts.map((one) => sum([...one.values()]))]],
  }
}

/** `GET /nodes/{}/qemu/{}/config`, and what came of it where that says why it was asked. */
function endpoint({ method, path, status }: Request): string {
  const [bare = ''] = path.replace('/api2/json', '').split('?')
  const shape = bare
    .replace(/^\/nodes\/[^/]+/, '/nodes/{node}')
    .replace(/\/qemu\/\d+/, '/qemu/{vmid}')
    .replace(/\/tasks\/[^/]+/, '/tasks/{upid}')
    .replace(/\/storage\/[^/]+/, '/storage/{storage}')
    .replace(/\/content\/.+/, '/content/{volume}')
  return `${method} ${shape}${status === 403 ? ' (403)' : ''}`
}
