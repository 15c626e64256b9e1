import {
  type CallLog,
  createProxmox,
  type Endpoint,
  type Exchange,
  type Invocation,
  type Provider,
  type ProxmoxOptions,
  type RawAnswer,
  type RawRequest,
} from '../../../lib/proxmox/index.ts'

export const token = 'egress@pve!ctl=canary-1111-2222'
export const upid = (type = 'qmclone', id = '9000', node = 'pve1') =>
  `UPID:${node}:0000046A:0003E55F:6B0E270F:${type}:${id}:egress@pve!ctl:`

export const pve1: Endpoint = { url: 'https://pve1.test:8006', node: 'pve1' }
export const pve2: Endpoint = { url: 'https://pve2.test:8006', node: 'pve2' }
export const pve3: Endpoint = { url: 'https://pve3.test:8006', node: 'pve3' }

export const ok = (data: unknown): RawAnswer => answer(200, 'OK', { data })
export const refused = (status: number, message: string, errors?: Record<string, string>): RawAnswer =>
  answer(status, message, { data: null, message: `${message}\n`, ...(errors ? { errors } : {}) })
export const answer = (status: number, reason: string, body: unknown = ''): RawAnswer => ({
  status,
  reason,
  headers: {},
  body: typeof body === 'string' ? body : JSON.stringify(body),
})
export const missing = (vmid: number, node = 'pve1') =>
  refused(500, `Configuration file 'nodes/${node}/qemu-server/${vmid}.conf' does not exist`)
export const forbidden = (path: string, privilege: string) =>
  refused(403, `Permission check failed (${path}, ${privilege})`)
export const taken = (vmid: number) =>
  refused(400, 'Parameter verification failed.', { vmid: `VM ${vmid} already exists` })

/** A connection that failed, as an exchange reports it. */
export const broken = (code: string, sent: boolean) =>
  Object.assign(new Error(`connection: ${code}`), { code, sent })

export type Sent = {
  node: string
  method: string
  path: string
  query: string
  headers: RawRequest['headers']
  body: string
}

type Reply = RawAnswer | Error

/** A cluster played by a function of the request; remembers what it was asked. */
export function fakeCluster(
  reply: (request: Sent) => Reply | Promise<Reply>,
  options: Partial<ProxmoxOptions> = {},
) {
  const sent: Sent[] = []
  const log: CallLog[] = []
  const exchange: Exchange = async (endpoint, { method, path, headers, body }) => {
    const [below = '', query = ''] = path.replace('/api2/json', '').split('?', 2)
    const text = Buffer.from(body ?? []).toString('latin1')
    const request = { node: endpoint.node ?? endpoint.url, method, path: below, query, headers, body: text }
    sent.push(request)
    const replied = await reply(request)
    if (replied instanceof Error) throw replied
    return replied
  }
  const proxmox = createProxmox({
    endpoints: [pve1],
    token: { get: async () => [token] },
    exchange,
    onCall: (entry) => log.push(entry),
    ...options,
  })
  const within = (bounds: Partial<Invocation> = {}): Provider =>
    proxmox.with({ signal: new AbortController().signal, ...bounds })
  return { provider: within(), within, sent, log }
}

/** What a promise rejects with; fails when it does not. */
export async function rejection(promise: Promise<unknown>): Promise<unknown> {
  const outcome = await promise.then(
    (value) => ({ value }),
    (error: unknown) => ({ error }),
  )
  if ('error' in outcome) return outcome.error
  throw new Error(`expected a rejection, got ${JSON.stringify(outcome.value)}`)
}
