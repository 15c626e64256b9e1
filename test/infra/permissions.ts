import { statementsOf } from './rules/roles.ts'
import { list, ofType, type Template, target } from './template.ts'

/** What each role of a template may do, as a page for readers. */
export function permissionsPage(template: Template): string {
  const roles = ofType(template, 'AWS::IAM::Role').map(([name, { Properties }]) => {
    const rows = statementsOf(template, name).map(
      ({ Sid, Effect, Action, Resource, Condition }) =>
        `| ${Sid} | ${Effect === 'Deny' ? '**never** ' : ''}${list(Action).map(code).join(', ')} | ${list(Resource).map(resourceText).join(', ')}${Condition ? ', when called by the code inside' : ''} |`,
    )
    return [
      `## ${name}`,
      '',
      `${textOf(Properties.Description)}. Taken by ${code(Properties.AssumeRolePolicyDocument.Statement[0].Principal.Service)}.`,
      '',
      '| for | may | on |',
      '| --- | --- | --- |',
      ...rows,
      '',
    ].join('\n')
  })
  return [
    '# What the functions may do on AWS',
    '',
    'Written from the packaged template of the stage `example` by its test, which also holds it against the calls that the',
    'code makes: `npx vitest run test/infra/template.test.ts --update` writes it anew.',
    '',
    ...roles,
  ].join('\n')
}

const code = (text: string) => `\`${text}\``
const textOf = (value: unknown) => String(value ?? '')

function resourceText(resource: unknown): string {
  if (typeof resource === 'string') return code(resource)
  const sub =
    resource !== null && typeof resource === 'object' && 'Fn::Sub' in resource
      ? String(resource['Fn::Sub'])
      : ''
  const parameter = /:parameter\/(.*)$/.exec(sub)?.[1]
  if (parameter !== undefined) return `parameter ${code(`/${parameter}`)}`
  const index = /^\$\{(\w+)\.Arn\}\/index\/(\w+)$/.exec(sub)
  if (index) return `${index[1]}, index ${code(index[2] ?? '')}`
  return target(resource) ?? code(sub.replace(/\$\{AWS::(\w+)\}/g, '<$1>'))
}
