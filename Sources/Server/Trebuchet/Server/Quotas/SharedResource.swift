internal import Platform

/// A resource with a limit for the server and a quota for each scope: items or bytes.
enum SharedResource: Int, CaseIterable, Sendable {
    case connections, streams, filters, actorsOnDemand, clientActors, clientCalls, clientCallBytes
    case recordedResponses, recordedResponseBytes
    /// The bytes of recorded responses that the store also has.
    case persistedResponseBytes
    case httpRequests

    /// The plural name in error messages.
    var name: String {
        switch self {
        case .connections: "connections"
        case .streams: "streams"
        case .filters: "streams with a filter"
        case .actorsOnDemand: "activated actors"
        case .clientActors: "references to client actors"
        case .clientCalls: "calls to clients"
        case .clientCallBytes: "bytes in calls to clients"
        case .recordedResponses: "recorded responses"
        case .recordedResponseBytes: "bytes of recorded responses"
        case .persistedResponseBytes: "bytes of persisted responses"
        case .httpRequests: "HTTP requests"
        }
    }

    /// Returns a number of uses in words, for error messages.
    func text(of count: Int) -> String {
        switch self {
        case .filters: count.counted("stream with a filter", name)
        case .clientActors: count.counted("reference to client actors", name)
        case .clientCalls: count.counted("call to clients", name)
        case .clientCallBytes: count.counted("byte in calls to clients", name)
        case .recordedResponseBytes: count.counted("byte of recorded responses", name)
        case .persistedResponseBytes: count.counted("byte of persisted responses", name)
        case .connections, .streams, .actorsOnDemand, .recordedResponses, .httpRequests:
            count.counted(String(name.dropLast()))
        }
    }

    /// The advice of an error message.
    fileprivate var advice: String {
        switch self {
        case .recordedResponses, .recordedResponseBytes, .persistedResponseBytes: "retry later"
        default: "retry when some have ended"
        }
    }
}

/// A limit that a use would exceed.
struct QuotaExceeded: Error, Sendable {
    let resource: SharedResource
    let scope: QuotaScope
    let limit: QuotaLimit

    /// The setting with its value, for texts about one call.
    var setting: String { "ServerLimits.\(limit.setting): \(limit.value)" }

    /// The subject of the text. The error of a call to a client may reach another client, which must not learn the principal.
    private var subject: String {
        if case .principal = scope, resource == .clientCalls || resource == .clientCallBytes {
            return "the client's principal has"
        }
        return scope.name
    }

    var error: TrebuchetError {
        TrebuchetError(
            .rateLimited,
            "quota exceeded: \(subject) \(resource.text(of: limit.value)) (ServerLimits.\(limit.setting)); "
                + resource.advice)
    }
}
