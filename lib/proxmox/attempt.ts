import { decode, problem } from './answer.ts'
import { concealer } from './conceal.ts'
import { isProxmoxError, type ProxmoxError } from './errors.ts'
import { isFailure } from './exchange.ts'
import type { CallLog, Endpoint, Exchange, RawAnswer, RawRequest } from './options.ts'
import { type Call, nameOf } from './request.ts'
import { beginSpan } from './span.ts'
import { parseUpid } from './upid.ts'

export type Attempt = { endpoint: Endpoint; request: RawRequest; token: string }

export type AttemptPorts = { exchange: Exchange; now: () => number; onCall?: (entry: CallLog) => void }

/** Puts a call to one endpoint with one token, and makes one line and one span of it. @throws {ProxmoxError} */
export async function attempt<T>(call: Call<T>, to: Attempt, ports: AttemptPorts): Promise<T> {
  const { endpoint, request, token } = to
  const startedMs = ports.now()
  const endSpan = beginSpan(call, endpoint)
  const log = (outcome: Partial<CallLog>) => {
    endSpan(outcome)
    ports.onCall?.({ ...subject(call, endpoint), ...outcome, ms: ports.now() - startedMs })
  }
  let status: number | undefined
  let data: T
  try {
    const headers = { ...request.headers, authorization: `PVEAPIToken=${token}` }
    const answer = withoutToken(await ports.exchange(endpoint, { ...request, headers }), token)
    status = answer.status
    data = decode(call, answer, nameOfToken(token))
  } catch (cause) {
    const error = isProxmoxError(cause) ? cause : broken(call, endpoint, cause, token)
    log({ code: error.code, ...(status === undefined ? {} : { status }) })
    throw error
  }
  log({ status, ...(typeof data === 'string' && parseUpid(data) ? { upid: data } : {}) })
  return data
}

function subject(
  call: Call<unknown>,
  endpoint: Endpoint,
): Pick<CallLog, 'call' | 'endpoint' | 'node' | 'vmid'> {
  const { node, vmid } = call.path ?? {}
  return {
    call: nameOf(call),
    endpoint: endpoint.url,
    ...(node === undefined ? {} : { node }),
    ...(vmid === undefined ? {} : { vmid }),
  }
}

// A connection that failed. A failure that does not say whether the request left is taken to have sent it.
function broken(call: Call<unknown>, endpoint: Endpoint, cause: unknown, token: string): ProxmoxError {
  const { code, sent } = isFailure(cause) ? cause : { code: 'UNKNOWN', sent: true }
  const words = cause instanceof Error ? cause.message : 'the connection failed'
  const said = Object.assign(
    new Error(concealer([...secretsOf(token), ...(call.secrets ?? [])])(words.slice(0, 4096))),
    {
      code,
    },
  )
  const fields = { code: meaning(code, sent), sent: sent ? ('maybe' as const) : ('no' as const), cause: said }
  return problem(call, fields, `${new URL(endpoint.url).host}: ${code} ${said.message}`)
}

function meaning(code: string, sent: boolean): 'Unreachable' | 'Untrusted' | 'Aborted' | 'Unexpected' {
  if (code === 'ABORTED') return 'Aborted'
  if (code === 'TOO_LARGE') return 'Unexpected'
  // Node's names for what is wrong with a certificate, and our own for a pinned one.
  return !sent && /CERT|^UNABLE_TO_|^HOSTNAME_MISMATCH$/.test(code) ? 'Untrusted' : 'Unreachable'
}

/** True when the connection broke under a request that may have been carried out, and no time-out of ours did it. */
export function wasCut({ cause, sent }: ProxmoxError): boolean {
  return sent === 'maybe' && codeOf(cause) !== undefined && codeOf(cause) !== 'TIMEOUT'
}

/**
 * True when the endpoint itself is to blame. An answer never is: a 595 or 596 tells of the node behind it. Nor is our
 * own time-out on a call for another node, which may be the one that hangs.
 */
export function blamesEndpoint({ cause, code, node }: ProxmoxError, endpoint: Endpoint): boolean {
  if ((code !== 'Unreachable' && code !== 'Untrusted') || codeOf(cause) === undefined) return false
  return codeOf(cause) !== 'TIMEOUT' || node === undefined || node === endpoint.node
}

function codeOf(cause: unknown): string | undefined {
  return cause instanceof Error && 'code' in cause && typeof cause.code === 'string' ? cause.code : undefined
}

// Something between us and Proxmox may quote the request back at us.
function withoutToken(answer: RawAnswer, token: string): RawAnswer {
  const hide = hiderOf(token)
  return { ...answer, reason: hide(answer.reason), body: hide(answer.body) }
}

const hiders = new Map<string, ReturnType<typeof concealer>>()
/** As many tokens as a process has clusters, twice while they are replaced; made once for each, since every answer is looked through. */
const fewHiders = 32

function hiderOf(token: string): ReturnType<typeof concealer> {
  const known = hiders.get(token)
  if (known) return known
  if (hiders.size >= fewHiders) hiders.clear()
  const hide = concealer(secretsOf(token))
  hiders.set(token, hide)
  return hide
}

/** The part of a token that is no secret. What does not look like one is shown to nobody. */
const nameOfToken = (token: string) => /^([^\s=!]+@[^\s=!]+![A-Za-z][\w.-]*)=/.exec(token)?.[1]

/** All behind the name. Where a token is not what it should be, nobody knows where its secret begins. */
const secretsOf = (token: string) => [
  token.slice(token.indexOf('=') + 1),
  token.slice(token.lastIndexOf('=') + 1),
]
