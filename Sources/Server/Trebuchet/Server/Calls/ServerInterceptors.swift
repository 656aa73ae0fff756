internal import Networking
internal import TrebuchetActors
internal import TrebuchetWire

extension ServerRequest {
    /// Creates the request of a message.
    ///
    /// - Parameters:
    ///   - isCall: True for a call of a method.
    ///   - arguments: The arguments of a call, if an interceptor reads them.
    init(
        _ message: borrowing Message, isCall: Bool, _ target: String, of type: ActorType, by caller: Caller?,
        over connection: CallSessionID, within timeLimit: Duration, arguments: Arguments?
    ) {
        self.init(
            kind: isCall ? .call : .stream, actor: message.actorName, type: type.name, target: target, caller: caller,
            connection: connection.number, isRepeat: message.kind == .repeat,
            isResumed: message.kind == .streamResume, timeLimit: timeLimit, trace: message.trace, arguments: arguments,
            metadata: message.metadata)
    }
}

/// The interceptors of a server, in their order.
struct ServerInterceptors: Sendable {
    /// The first ones that accept or refuse at once.
    let admissions: [any AdmissionInterceptor]
    /// The first other one, and all behind it.
    let others: [any ServerInterceptor]
    let needsArguments: Bool

    /// Interceptors that refuse everything.
    static let refusingAll = ServerInterceptors([ClosedServer()])

    private struct ClosedServer: AdmissionInterceptor {
        func admit(_ request: ServerRequest) throws {
            throw TrebuchetError(.unavailable, "the server has shut down")
        }
    }

    /// Returns nil for an empty list.
    init?(_ interceptors: [any ServerInterceptor]) {
        guard !interceptors.isEmpty else { return nil }
        var admissions: [any AdmissionInterceptor] = []
        for interceptor in interceptors {
            guard let admission = interceptor as? any AdmissionInterceptor else { break }
            admissions.append(admission)
        }
        self.admissions = admissions
        others = Array(interceptors[admissions.count...])
        needsArguments = interceptors.contains { $0.readsArguments }
    }

    /// Runs the interceptors that may suspend around `last`.
    func run(
        _ request: ServerRequest, _ last: @escaping ServerInterceptor.Next
    ) async throws -> InterceptedResult {
        var next = last
        for interceptor in others.reversed() {
            next = { [inner = next] in try await interceptor.call($0, next: inner) }
        }
        return try await next(request)
    }

    /// Runs the interceptors that may suspend before a stream.
    func runStart(_ request: ServerRequest) async throws {
        for interceptor in others { try await interceptor.startStream(request) }
    }

    /// Returns whether interceptors refuse a request or run around it in a task; false if the request continues now.
    ///
    /// - Parameter method: nil for a stream.
    func intercept(
        _ message: borrowing Message, _ target: String, _ method: ActorMethod?, of type: ActorType,
        over connection: ServerConnection
    ) -> Bool {
        let shard = connection.shard
        if !others.isEmpty, !connection.isCounted, shard.context.hasRates,
            let refusal = connection.rateRefusal(of: target, message.actorName)
        {
            connection.fail(message, refusal)
            return true
        }
        var arguments: ServerRequest.Arguments?
        if needsArguments, let method {
            arguments = shard.hidesErrors(of: method, type) ? .redacted : .json(message.argumentArray)
        }
        let request = ServerRequest(
            message, isCall: method != nil, target, of: type, by: connection.authorization.caller,
            over: connection.name, within: connection.timeLimit(of: message), arguments: arguments)
        do {
            for interceptor in admissions { try interceptor.admit(request) }
        } catch {
            connection.fail(message, error)
            return true
        }
        guard !others.isEmpty else { return false }
        if method == nil {
            interceptStream(request, message, over: connection)
        } else if let call = connection.registerCall(message, isPermitted: false) {
            InterceptedCall(call, of: connection).run(self, request, message)
        }
        return true
    }

    /// Runs interceptors before a stream, which waits as a running call. Then its message is handled again.
    private func interceptStream(
        _ request: ServerRequest, _ message: borrowing Message, over connection: ServerConnection
    ) {
        let resumed = message.kind == .streamResume ? connection.ownName(in: message) : nil
        guard let call = connection.registerCall(message, resumed ?? Array(message.callID), isPermitted: false)
        else { return }
        call.stream = RequestedStream(actor: ActorName(request.actor), target: request.target, resumed: resumed)
        _ = call.beginInterception()
        let (reactor, owned) = (connection.shard.reactor, OwnedMessage(message))
        call.run(
            in: Task.immediate(executorPreference: reactor.taskExecutor) {
                let result: Result<Void, any Error>
                do {
                    result = .success(try await runStart(request))
                } catch {
                    result = .failure(error)
                }
                reactor.execute {
                    connection.didWork(call)
                    guard connection.isOpen, !call.isAnswered else { return }
                    defer { connection.sendReadyResponses() }
                    if case .failure(let error) = result { return connection.finish(call, .failure(error)) }
                    connection.continueAgain(call, owned)
                }
            })
    }
}
