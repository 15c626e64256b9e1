import { createAdmission } from './admission.ts'
import { problem } from './answer.ts'
import { attempt, blamesEndpoint, wasCut } from './attempt.ts'
import { checkEndpoints, createEndpoints } from './endpoints.ts'
import { isProxmoxError, type ProxmoxError } from './errors.ts'
import { createExchange } from './exchange.ts'
import type { Endpoint, Invocation, ProxmoxOptions, RawRequest, Timeouts } from './options.ts'
import { type Call, encode } from './request.ts'
import { createTokens } from './tokens.ts'
import { parseUpid } from './upid.ts'

export type Send = <T>(call: Call<T>) => Promise<T>

/** What bounds a call: the invocation, and perhaps the one endpoint it must go to. */
export type Bounds = Invocation & { endpoint?: Endpoint }

export type Transport = {
  send<T>(call: Call<T>, bounds: Bounds): Promise<T>
  /** All endpoints, the likeliest to answer first. */
  endpoints(): Endpoint[]
  close(): Promise<void>
}

const defaultTimeouts: Timeouts = { readMs: 20_000, changeMs: 35_000, uploadMs: 60_000, agentMs: 15_000 }
const defaultBodyBytes = 16 * 1024 * 1024

/**
 * Sends one call once. Goes to another endpoint when the call surely was not carried out, and with a GET also when
 * that is not known. Everything it throws is a ProxmoxError, and the token is in none.
 */
export function createTransport(options: ProxmoxOptions): Transport {
  checkEndpoints(options.endpoints)
  const now = options.now ?? Date.now
  const timeouts = { ...defaultTimeouts, ...options.timeouts }
  const endpoints = createEndpoints(options.endpoints, now)
  const tokens = createTokens(options.token, now)
  const admit = createAdmission()
  const { exchange, close } = options.exchange
    ? { exchange: options.exchange, close: async () => {} }
    : createExchange(options.ca)
  const ports = { exchange, now, ...(options.onCall ? { onCall: options.onCall } : {}) }

  const send = <T>(call: Call<T>, bounds: Bounds): Promise<T> =>
    admit(call.path?.node ?? bounds.endpoint?.url ?? 'any', () => carry(call, bounds))

  async function carry<T>(call: Call<T>, bounds: Bounds): Promise<T> {
    const patienceMs = timeouts[call.patience ?? (isChange(call) ? 'changeMs' : 'readMs')]
    const giveUpAt = now() + 2 * patienceMs
    const queue = bounds.endpoint ? [bounds.endpoint] : endpoints.inOrder(call.path?.node)
    const failures: ProxmoxError[] = []
    let mayRepeat = !isChange(call)
    for (let endpoint = queue.shift(); endpoint; endpoint = queue.shift()) {
      const timeoutMs = Math.min(patienceMs, giveUpAt - now())
      if (timeoutMs <= 0) break
      try {
        return await ask(call, endpoint, { ...bounds, timeoutMs })
      } catch (error) {
        if (!isProxmoxError(error, 'Unreachable', 'Untrusted')) throw error
        failures.push(error)
        if (isChange(call) && error.sent !== 'no') break
        // A kept connection may close just as it is used again, which says nothing about the endpoint.
        if (mayRepeat && wasCut(error)) queue.unshift(endpoint)
        mayRepeat = false
      }
    }
    throw summary(call, failures)
  }

  async function ask<T>(
    call: Call<T>,
    endpoint: Endpoint,
    bounds: Bounds & { timeoutMs: number },
  ): Promise<T> {
    const request: RawRequest = {
      method: call.spec.method,
      ...encoded(call),
      signal: bounds.signal,
      timeoutMs: bounds.timeoutMs,
      maxBodyBytes: call.maxBodyBytes ?? defaultBodyBytes,
    }
    let refusal: ProxmoxError | undefined
    for await (const token of candidates(call)) {
      guard(call, bounds)
      if (!isSendable(token)) {
        refusal = problem(call, { code: 'Unauthorized', sent: 'no' }, `not sent: ${NO_TOKEN}`)
        continue
      }
      try {
        const data = await attempt(call, { endpoint, request, token }, ports)
        endpoints.answered(endpoint)
        return data
      } catch (error) {
        if (!isProxmoxError(error)) throw error
        if (blamesEndpoint(error, endpoint)) endpoints.failed(endpoint)
        else if (error.status !== undefined) endpoints.answered(endpoint)
        if (error.code !== 'Unauthorized') throw error
        tokens.refuse(token)
        refusal = error
      }
    }
    throw (
      refusal ??
      problem(
        call,
        { code: 'Unauthorized', sent: 'no' },
        'not sent: no token is stored, or it was refused just now',
      )
    )
  }

  // A name that Proxmox told us, and that leads nowhere.
  function encoded(call: Call<unknown>): ReturnType<typeof encode> {
    try {
      return encode(call)
    } catch (cause) {
      const words = cause instanceof Error ? cause.message : 'not to be encoded'
      throw problem(call, { code: 'Rejected', sent: 'no', cause }, words)
    }
  }

  async function* candidates(call: Call<unknown>): AsyncGenerator<string> {
    try {
      yield* tokens.candidates(parseUpid(call.path?.upid ?? '')?.user)
    } catch (cause) {
      throw problem(call, { code: 'Unauthorized', sent: 'no', cause }, 'the token could not be read')
    }
  }

  // Time is over for everything once the signal fired, and for changes already at their own limit.
  function guard(call: Call<unknown>, { signal, mutateUntilMs = Number.POSITIVE_INFINITY }: Bounds): void {
    if (!signal.aborted && (!isChange(call) || now() < mutateUntilMs)) return
    throw problem(call, { code: 'Aborted', sent: 'no' }, 'not sent: the time of this invocation is over')
  }

  return { send, endpoints: () => endpoints.inOrder(), close }
}

/** What a header takes, and a token never has more of: no space, no line end, no letter of other scripts. */
const isSendable = (token: string) => /^[!-~]+$/.test(token)
const NO_TOKEN = 'what is stored as the token is none, wanted one line user@realm!name=secret'

function isChange({ spec }: Call<unknown>): boolean {
  return spec.method !== 'GET'
}

// The last failure speaks for all; the earlier ones are in its words and beneath it.
function summary(call: Call<unknown>, failures: ProxmoxError[]): ProxmoxError {
  const last = failures.at(-1)
  if (!last) return problem(call, { code: 'Unreachable', sent: 'no' }, 'no endpoint was tried')
  if (failures.length === 1) return last
  const { code, sent, status } = last
  const words = failures.map(({ message }) => message.slice(message.indexOf(': ') + 2))
  const cause = new AggregateError(failures, 'no endpoint answered')
  return problem(
    call,
    { code, sent, cause, ...(status === undefined ? {} : { status }) },
    [...new Set(words)].join('; '),
  )
}
