import { inspect } from 'node:util'
import { afterEach, describe, expect, it } from 'vitest'
import { plots } from '../faults/plots.ts'
import { openStage, type Stage } from '../faults/stage.ts'
import { seeded } from '../lab/lab.ts'
import { collectSpans, type Spans } from '../lab/spans.ts'
import {
  expectNoTrace,
  leftBy,
  PASSWORD,
  quoted,
  secretOf,
  secretSpec,
  styles,
  USER_DATA_LINE,
} from './canary.ts'

// Each plot is lived with secrets in its requests, while now and then something answers with what it was sent, in each of the
// ways in turn. The plots end as they are to end, and nothing that is left of them has a secret in it.

let stage: Stage
let spans: Spans
afterEach(async () => {
  await spans.stop()
  await stage?.lab.close()
})

/** One call in so many. */
const EVERY = 6

/** What is published asks for a password and brings userData. */
function withSecrets(plain: Stage): Stage {
  return {
    ...plain,
    publish: (side, event, delayMs) =>
      plain.publish(
        side,
        'spec' in event ? { ...event, spec: { ...(event.spec as object), ...secretSpec } } : event,
        delayMs,
      ),
  }
}

/** Kinds of answers after which a life goes on by itself. */
const passing = [
  'a message',
  'the page of a gateway',
  'a page that is cut short',
  'a message that we cut short',
]
const STYLES = [...passing, 'something that is no answer', 'a broken connection']

describe.each(plots.map((plot) => [plot.name, plot] as const))('the plot %s', (_, plot) => {
  it('ends as it is to end, and leaves no secret anywhere', async () => {
    spans = collectSpans()
    const random = seeded(plot.name.length)
    let struck = 0
    stage = withSecrets(
      await openStage({
        ...plot.lab,
        passwords: { pw: PASSWORD },
        interpose: ({ surroundings, exchange }) => ({
          surroundings,
          async exchange(endpoint, request) {
            if (random() * EVERY >= 1) return exchange(endpoint, request)
            // Of a change nobody knows whether it was made.
            if (request.method !== 'GET' && random() < 0.5) await exchange(endpoint, request)
            const reply = styles[STYLES[struck++ % STYLES.length] ?? '']?.(quoted(request))
            if (reply instanceof Error || !reply) throw reply
            return reply
          },
        }),
      }),
    )
    await plot.before(stage)
    plot.event(stage)
    await plot.meanwhile?.(stage)
    await stage.run()
    expect(struck).toBeGreaterThan(0)
    // What else is left of such a life is for others to judge, and for gc.
    expect(stage.lab.row('alpha')).toMatchObject(plot.wish)
    const left = {
      ...(await leftBy(stage.lab)),
      spans: spans
        .all()
        .map(({ name, attributes, events, status, links }) =>
          inspect({ name, attributes, events, status, links }, { depth: 10, maxStringLength: null }),
        ),
    }
    expectNoTrace(left, [secretOf(stage.lab.world.tokens.egress), PASSWORD, USER_DATA_LINE])
  })
})
