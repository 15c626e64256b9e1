import { list, type Template, target } from '../template.ts'
import { functions, mappings } from './functions.ts'
import { statementsOf } from './roles.ts'
import type { Rule } from './rule.ts'

/**
 * Lambda ends a chain of messages that brought the same function 16 invocations, unless the function says that it means it.
 * Source: AWS Lambda, "Lambda recursive loop detection".
 */
export const messagesToItselfAreMeant: Rule = (template) =>
  functions(template)
    .filter(([name, { Properties }]) => sendsToItself(template, name) && Properties.RecursiveLoop !== 'Allow')
    .map(([name]) => `${name} sends to its own queue, and Lambda would end each chain after 16 invocations`)

const sendsToItself = (template: Template, name: string): boolean => {
  const sendsTo = statementsOf(template, target(template.Resources[name]?.Properties.Role) ?? '')
    .filter(({ Action }) => list(Action).includes('sqs:SendMessage'))
    .flatMap(({ Resource }) => list(Resource).map(target))
  return mappings(template).some(
    ([, { Properties }]) =>
      target(Properties.FunctionName) === name && sendsTo.includes(target(Properties.EventSourceArn)),
  )
}
