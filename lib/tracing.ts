import {
  type Attributes,
  type Context,
  context,
  createContextKey,
  diag,
  INVALID_SPAN_CONTEXT,
  isSpanContextValid,
  propagation,
  type Span,
  SpanKind,
  type SpanOptions,
  SpanStatusCode,
  trace,
} from '@opentelemetry/api'

// OpenTelemetry's API alone: where nobody has put an SDK into the process, all of this does nothing and sends nothing.

/** What of a trace a message carries in its attributes, by their names. Source: W3C Trace Context. */
export type Carrier = Readonly<Record<string, string>>

/** Baggage is not carried on: it is the publisher's, and may hold anything. */
const CARRIED = ['traceparent', 'tracestate'] as const

/** In the context of a delivery: what the messages that it leads to go on from. */
const ANCHOR = createContextKey('egress-proxies anchor')

/** Those of some attributes that say which trace a message is of; none where nobody would read them. */
export function carriedBy(attribute: (name: string) => string | undefined): Carrier {
  if (propagation.fields().length === 0) return {}
  return Object.fromEntries(
    CARRIED.flatMap((name) => {
      const value = attribute(name)
      return value === undefined ? [] : [[name, value]]
    }),
  )
}

/**
 * The span of one delivery. It is of the trace that its message carries, else of a new one, and linked to the invocation that
 * it came with: the records of a batch have nothing to do with each other.
 *
 * What a message that `continues` leads to goes on from where that message came from, not from this span: so the deliveries
 * of a proxy stand side by side under the request that they serve, where each within the last would be hundreds deep.
 */
export function traceDelivery<T>(
  delivery: { carrier?: Carrier; continues: boolean; attributes: Attributes },
  work: (span: Span) => Promise<T>,
): Promise<T> {
  const { carrier = {}, continues, attributes } = delivery
  const around = context.active()
  const arrived = propagation.extract(trace.deleteSpan(around), carrier)
  const options = { kind: SpanKind.CONSUMER, attributes, ...linkTo(around) }
  const span = begin('process', options, arrived)
  const within = trace.setSpan(arrived, span)
  const isOnItsWay = continues && trace.getSpanContext(arrived) !== undefined
  return during(span, within.setValue(ANCHOR, isOnItsWay ? arrived : within), () => work(span))
}

/** The span of a message of ours that is sent; `send` is given what the message is to carry. */
export function traceSend<T>(
  message: { name: string; attributes: Attributes; from: 'the delivery' | 'here' | 'a new trace' },
  send: (carrier: Carrier) => Promise<T>,
): Promise<T> {
  const { name, attributes, from } = message
  const around = context.active()
  const isApart = from === 'a new trace'
  const before = isApart ? trace.deleteSpan(around) : around
  const options = { kind: SpanKind.PRODUCER, attributes, ...(isApart && linkTo(around)) }
  const span = begin(name, options, before)
  const within = trace.setSpan(before, span)
  // Set by traceDelivery alone.
  const anchor = from === 'the delivery' ? (around.getValue(ANCHOR) as Context | undefined) : undefined
  return during(span, within, () => send(carrierOf(anchor ?? within)))
}

/** The span of a run that no message has set off. */
export function traceRun<T>(name: string, work: () => Promise<T>): Promise<T> {
  const span = begin(name, { kind: SpanKind.INTERNAL }, context.active())
  return during(span, trace.setSpan(context.active(), span), work)
}

/** What a line of the log is found again by from its span; nothing where there is no span. */
export function activeIds(): { traceId?: string; spanId?: string } {
  const span = trace.getSpanContext(context.active())
  if (!span || !isSpanContextValid(span)) return {}
  return { traceId: span.traceId, spanId: span.spanId }
}

/** A span that ended in something else than what it was for. `code` says what; no words, which could hold anything. */
export function failed(span: Span, code: string): void {
  span.setAttribute('error.type', code)
  span.setStatus({ code: SpanStatusCode.ERROR, message: code })
}

// What an SDK does with a span is its own affair: one that throws holds up no proxy.

function begin(name: string, options: SpanOptions, within: Context): Span {
  try {
    return trace.getTracer('egress-proxies').startSpan(name, options, within)
  } catch (error) {
    diag.error('a span did not begin', error)
    return trace.wrapSpanContext(INVALID_SPAN_CONTEXT)
  }
}

function end(span: Span): void {
  try {
    span.end()
  } catch (error) {
    diag.error('a span did not end', error)
  }
}

async function during<T>(span: Span, within: Context, work: () => Promise<T>): Promise<T> {
  try {
    return await context.with(within, work)
  } catch (error) {
    failed(span, error instanceof Error ? error.name : 'Error')
    throw error
  } finally {
    end(span)
  }
}

function carrierOf(from: Context): Carrier {
  const all: Record<string, string> = {}
  propagation.inject(from, all)
  return carriedBy((name) => all[name])
}

function linkTo(other: Context): Pick<SpanOptions, 'links'> {
  const span = trace.getSpanContext(other)
  return span === undefined ? {} : { links: [{ context: span }] }
}
