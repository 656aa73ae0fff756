internal import Networking
internal import Transports
internal import TrebuchetActors
internal import WebSockets

/// Admits HTTP requests that make calls or run a route: counts them, and authenticates their callers.
struct HTTPAdmission: Sendable {
    /// The outcome of an admission.
    enum Outcome {
        /// The caller, nil where callers are not identified, and the place of the request among those of its host and principal.
        case admitted(Caller?, QuotaReservation)
        case refused(HTTPProblem)
    }

    let access: AccessPolicy
    let context: ServerContext

    /// Decides about a request by its head; calls `admitted` on the reactor of the request, at once or later.
    ///
    /// - Parameter identifies: False for a request whose caller is not asked for credentials.
    func admit(_ received: ReceivedRequest, identifies: Bool, _ admitted: @escaping (Outcome) -> Void) {
        let done = { (outcome: Outcome) in
            if case .admitted(let caller?, _) = outcome, let excess = joinPrincipal(of: caller, received) {
                return admitted(.refused(HTTPProblem(excess)))
            }
            admitted(outcome)
        }
        let host = received.host
        let reservation: QuotaReservation
        do throws(TrebuchetError) {
            // First of all, so that requests without valid credentials count too.
            reservation = try reserve(principal: nil, host)
        } catch {
            return done(.refused(HTTPProblem(error)))
        }
        guard identifies else { return done(.admitted(nil, reservation)) }
        let (head, address) = (received.request.head, received.request.remoteAddress)
        let (reactor, access, pending) = (received.reactor, access, LoopBound(done, on: received.reactor))
        Task(executorPreference: reactor.taskExecutor) {
            let caller: Result<Caller, any Error>
            do {
                caller = .success(try await access.caller(head, from: address))
            } catch {
                caller = .failure(error)
            }
            reactor.run { pending.value(outcome(of: caller, host, reservation)) }
        }
    }

    /// Counts the body and the response as buffered memory of the caller's principal. Returns the refusal of the request if too much
    /// has arrived already.
    private func joinPrincipal(of caller: Caller, _ received: ReceivedRequest) -> HTTPRejection? {
        guard let principal = caller.principal else { return nil }
        let row = context.quotas.row(of: .principal(principal.name))
        return row.memory.flatMap { received.join($0, of: row) }
    }

    private func outcome(
        of caller: Result<Caller, any Error>, _ host: AddressKey?, _ reservation: QuotaReservation
    ) -> Outcome {
        switch caller {
        case .failure(let error): return .refused(HTTPProblem(AccessPolicy.refusal(error, context.failedHooks)))
        case .success(let caller):
            guard let principal = caller.principal else { return .admitted(caller, reservation) }
            reservation.release()
            do throws(TrebuchetError) {
                return .admitted(caller, try reserve(principal: principal.id, host))
            } catch {
                return .refused(HTTPProblem(error))
            }
        }
    }

    private func reserve(principal: String?, _ host: AddressKey?) throws(TrebuchetError) -> QuotaReservation {
        let scopes = QuotaScopes(connection: nil, principal: principal, host: host)
        return try context.quotas.reserve(.httpRequests, in: context.quotas.account(for: scopes))
    }
}
