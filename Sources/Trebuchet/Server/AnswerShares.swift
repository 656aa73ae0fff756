internal import Bytes
internal import WebSockets

/// How many answers of `@Idempotent` calls a server keeps, for all and for each party: beside the memory of each reactor,
/// since a party may have connections on all of them.
final class AnswerShares: Sendable {
    let answers: Quota
    let bytes: Quota
    let principals: Shares<String>
    let hosts: Shares<AddressKey>

    init(_ limits: ServerLimits, within memory: MemoryBudget? = nil) {
        answers = Quota(limits.answers)
        bytes = Quota(limits.answerBytes, within: memory)
        principals = Shares(limit: limits.answersPerPrincipal)
        hosts = Shares(limit: limits.answersPerHost)
    }
}
