import { shown } from './wanted.ts'

/** It is part of names of queues, functions, alarms, parameters and files, none of which takes more than all do. */
const NAME = /^[a-z][a-z0-9-]{0,19}$/

/** What is wrong with the name of a stage; undefined when nothing is. */
export const stageNameFault = (name: string): { got: string; wanted: string } | undefined =>
  NAME.test(name)
    ? undefined
    : { got: shown(name), wanted: 'a name of lower-case letters, digits and hyphens, at most 20' }
