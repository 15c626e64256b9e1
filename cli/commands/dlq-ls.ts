import type { CommandModule } from 'yargs'
import { connect, withConnection } from '../connection.ts'
import type { Context } from '../context.ts'
import { duration, instant } from '../format.ts'
import { type Judged, openLetterDesk } from '../letter-desk.ts'
import { createGroups, type Group, namesText } from '../letter-groups.ts'
import { columns } from '../table.ts'
import { visible } from '../visible.ts'

type Flags = { data: string; messages: boolean; json: boolean; code?: string | undefined }

/** `egress dlq ls`: dead letters by cause. */
export const listLettersCommand = (context: Context) =>
  ({
    command: 'ls',
    aliases: ['list'],
    describe: 'List the dead letters, by cause',
    builder: (argv) =>
      withConnection(
        argv
          .option('messages', { type: 'boolean', default: false, describe: 'a line each, not by cause' })
          .option('code', { type: 'string', requiresArg: true, describe: 'only those of this cause' })
          .option('json', {
            type: 'boolean',
            default: false,
            describe: 'as a JSON list; with --messages one JSON document a line',
          }),
      )
        .example('$0 dlq ls', 'what needs a person, by cause')
        .example('$0 dlq ls --messages --code StuckLock', 'each of one cause'),
    handler: async (args) => {
      const connection = connect(args, context.env)
      try {
        const desk = openLetterDesk(connection, context)
        const isAsked = ({ letter }: Judged) => args.code === undefined || letter.code === args.code
        if (args.messages) {
          let count = 0
          await desk.look((page) => {
            for (const judged of page.filter(isAsked)) {
              count += 1
              context.out(args.json ? JSON.stringify(documentOf(judged)) : lineOf(judged))
            }
          })
          if (count === 0 && !args.json) context.err('no dead letters')
          return
        }
        const groups = createGroups()
        await desk.look((page) => page.filter(isAsked).forEach(groups.add))
        const list = groups.list()
        if (args.json) return context.out(JSON.stringify(list.map(groupDocument), null, 2))
        if (list.length === 0) return context.err('no dead letters')
        context.out(tableOf(list, Date.now()))
        const overtaken = list.reduce((sum, group) => sum + group.overtaken, 0)
        context.err(
          '\negress dlq show <uid> tells all of one; egress dlq redrive --code <code> runs those of a cause again',
        )
        if (overtaken > 0)
          context.err(`${overtaken} overtaken by their rows: egress dlq drop --overtaken --reason <why>`)
      } finally {
        connection.close()
      }
    },
  }) satisfies CommandModule<object, Flags>

function tableOf(groups: Group[], now: number): string {
  const head = ['CODE', 'COUNT', 'OVERTAKEN', 'OLDEST', 'NEWEST', 'ZONE', 'NODE', 'REASON']
  const rows = groups.map((group) => [
    visible(group.code, 40),
    String(group.count),
    group.overtaken === 0 ? '' : String(group.overtaken),
    `${duration(now - group.oldestAt)} ago`,
    `${duration(now - group.newestAt)} ago`,
    namesText(group.zones),
    namesText(group.nodes),
    visible(group.reason, 100),
  ])
  return columns(head, rows)
}

const groupDocument = ({ oldestAt, newestAt, zones, nodes, ...group }: Group) => ({
  ...group,
  oldestAt: instant(oldestAt),
  newestAt: instant(newestAt),
  zones: Object.fromEntries(zones),
  nodes: Object.fromEntries(nodes),
})

function lineOf({ letter, remedy }: Judged): string {
  const { code, uid = '', messageId, diedAt, problem, step = '' } = letter
  const state = remedy.kind === 'overtaken' || remedy.kind === 'pending' ? `[${remedy.kind}] ` : ''
  const place = [problem.zone, problem.node].filter((part) => part !== undefined).join('/')
  return [
    instant(diedAt),
    code,
    uid || messageId,
    step,
    visible(place),
    state + visible(problem.reason ?? '', 200),
  ]
    .map((part) => visible(part))
    .join('  ')
}

/** Without the body: a published one may hold a secret of its publisher's. */
const documentOf = ({ letter, remedy }: Judged) => ({
  messageId: letter.messageId,
  queue: letter.side,
  kind: letter.kind,
  code: letter.code,
  uid: letter.uid,
  turn: letter.turn,
  step: letter.step,
  diedAt: instant(letter.diedAt),
  problem: letter.problem,
  remedy: remedy.kind,
  why: 'why' in remedy ? remedy.why : undefined,
})
