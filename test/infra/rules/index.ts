import type { Template } from '../template.ts'
import {
  alarmsSayWhatToDo,
  alarmsTellSomebody,
  alarmsWatchRealMetrics,
  everyDeadLetterAlarms,
  everyFunctionAlarms,
  everySourceAlarmsWhenItStands,
  silenceOfTheScheduledFunctionsAlarms,
  theDashboardShowsRealMetrics,
  whatTheScheduledFunctionsFindAlarms,
} from './alarms.ts'
import { functionsSayWhoseTheyAre, zipsLieInAClosedBucket } from './deployment.ts'
import {
  batchesAreReportedInPart,
  batchesAreSmallAndBounded,
  batchesAtOnceAreThoseOfTheStage,
  environmentsAreComplete,
  environmentsHoldNoSecret,
  functionsEndBeforeTheirLease,
  functionsSitInSubnets,
  handlersExist,
  logsAreKeptForAWhileOnly,
  messagesStayHiddenSixTimesTheTimeOut,
  noMessageIsFilteredAway,
  runtimeIsNode24OnArm,
} from './functions.ts'
import { messagesToItselfAreMeant } from './loops.ts'
import {
  awsIsReachedWithoutTheInternet,
  endpointsServeTheAccountOnly,
  nothingLeadsElsewhere,
  theVpnLeadsToEveryCluster,
} from './network.ts'
import {
  bothSidesHaveAQueue,
  deadLettersAreKeptLongest,
  everyQueueThatFeedsAFunctionHasDeadLetters,
  messagesOutliveEveryRetry,
  noWindowOfRetriesReachesMaxReceiveCount,
  queuesAreEncrypted,
  queuesAreReachedByTlsOnly,
  redriveIsAllowedToItsSourceOnly,
  servicesSendForOurResourcesOnly,
} from './queues.ts'
import {
  codeCannotTouchItsNetwork,
  everyFunctionHasARoleOfItsOwn,
  nothingIsAllowedOnEverything,
  rolesAllowWhatTheCodeCallsAndNoMore,
  rolesAreTakenByTheirServiceOnly,
  servicesActForOurResourcesOnly,
} from './roles.ts'
import type { Given } from './rule.ts'
import {
  everyFunctionIsStartedBySomething,
  scheduledFunctionsRunOnceAtATime,
  schedulesMayStartNothingElse,
  schedulesMayStartTheirFunctions,
} from './schedules.ts'
import {
  canBeMadeInSomeOrder,
  knownToCloudFormation,
  namedByStage,
  refersToWhatIsThere,
} from './specification.ts'
import {
  tablesAreEncrypted,
  tablesArePaidByUse,
  tablesAreThoseOfOneMachine,
  tablesCanBeRestored,
  tablesOutliveTheStack,
} from './tables.ts'
import {
  alarmsCanReachTheirTopic,
  aSubscriptionShowsHowToFilter,
  outcomesAreEncrypted,
  theEventBusLeadsToTheQueues,
  topicsAreReachedByTlsOnly,
} from './topics.ts'

type AnyRule = (template: Template, given: Given) => string[] | Promise<string[]>

/** Every rule by its name, which says what holds. */
export const rules = {
  knownToCloudFormation,
  refersToWhatIsThere,
  canBeMadeInSomeOrder,
  namedByStage,
  bothSidesHaveAQueue,
  everyQueueThatFeedsAFunctionHasDeadLetters,
  noWindowOfRetriesReachesMaxReceiveCount,
  messagesOutliveEveryRetry,
  deadLettersAreKeptLongest,
  redriveIsAllowedToItsSourceOnly,
  queuesAreEncrypted,
  queuesAreReachedByTlsOnly,
  servicesSendForOurResourcesOnly,
  handlersExist,
  runtimeIsNode24OnArm,
  functionsEndBeforeTheirLease,
  messagesStayHiddenSixTimesTheTimeOut,
  batchesAreReportedInPart,
  batchesAreSmallAndBounded,
  batchesAtOnceAreThoseOfTheStage,
  messagesToItselfAreMeant,
  noMessageIsFilteredAway,
  functionsSitInSubnets,
  environmentsAreComplete,
  environmentsHoldNoSecret,
  logsAreKeptForAWhileOnly,
  everyFunctionIsStartedBySomething,
  scheduledFunctionsRunOnceAtATime,
  schedulesMayStartTheirFunctions,
  schedulesMayStartNothingElse,
  tablesAreThoseOfOneMachine,
  tablesArePaidByUse,
  tablesCanBeRestored,
  tablesAreEncrypted,
  tablesOutliveTheStack,
  outcomesAreEncrypted,
  alarmsCanReachTheirTopic,
  topicsAreReachedByTlsOnly,
  aSubscriptionShowsHowToFilter,
  theEventBusLeadsToTheQueues,
  alarmsWatchRealMetrics,
  alarmsTellSomebody,
  alarmsSayWhatToDo,
  everyDeadLetterAlarms,
  everySourceAlarmsWhenItStands,
  everyFunctionAlarms,
  whatTheScheduledFunctionsFindAlarms,
  silenceOfTheScheduledFunctionsAlarms,
  theDashboardShowsRealMetrics,
  nothingLeadsElsewhere,
  theVpnLeadsToEveryCluster,
  awsIsReachedWithoutTheInternet,
  endpointsServeTheAccountOnly,
  everyFunctionHasARoleOfItsOwn,
  rolesAreTakenByTheirServiceOnly,
  servicesActForOurResourcesOnly,
  rolesAllowWhatTheCodeCallsAndNoMore,
  nothingIsAllowedOnEverything,
  codeCannotTouchItsNetwork,
  zipsLieInAClosedBucket,
  functionsSayWhoseTheyAre,
} satisfies Record<string, AnyRule>
export type RuleName = keyof typeof rules
