internal import Platform
internal import SharedState
internal import Synchronization
internal import TrebuchetClient

/// The calls to the server.
extension JoinedRoom {
    /// Starts the tasks of the room. They run until the room is unused and the server has confirmed the end of the membership.
    func start(in rooms: JoinedRooms) {
        let watching = Task { await watchConnection() }
        let showing = Task { await deliverChanges() }
        let signing = Task { await watchSignIns() }
        Task {
            await runConnection(in: rooms)
            watching.cancel()
            signing.cancel()
            showing.cancel()
            await showing.value
            if isLeft { deliverEmptyRoster() }
        }
    }

    private func runConnection(in rooms: JoinedRooms) async {
        while true {
            var isOver = false
            for await _ in changes.stream {
                isOver = await runDueSteps()
                if isOver { break }
            }
            guard isOver else { return }
            if rooms.remove(self) { break }
        }
        settleAll(isLeft ? RoomError.left : CancellationError())
        stopReaders()
    }

    /// Executes all due steps; returns true at the end of the room.
    private func runDueSteps() async -> Bool {
        while true {
            let (step, presence, publication) = contents.withLock { contents in
                contents.outbox.removeAll { $0.isSettled }
                let step = contents.plan.next(hasEvents: !contents.outbox.isEmpty)
                return (step, contents.plan.presence, step == .publish ? contents.outbox.first : nil)
            }
            if step == .end { return true }
            do {
                let room = try client.resolve(RemoteRoom.self, id: name)
                adjustReaders(room)
                guard step != .wait else {
                    waitForEvents()
                    return false
                }
                try await performStep(step, room, presence: presence, publication)
            } catch {
                failed(step, publication, error)
            }
        }
    }

    private func performStep(
        _ step: RoomPlan.Step, _ room: RemoteRoom, presence: JSONValue?, _ publication: Publication?
    ) async throws {
        switch step {
        case .join(let shown, let token):
            let attempt = contents.withLock { $0.plan.attempt }
            let ticket = try await room.join(
                presence: shown.map { EncodedJSON($0) }, token: token, attempt: attempt)
            change { contents in
                contents.joins += 1
                let isNew = !contents.ownMemberships.ids.contains(ticket.membershipID)
                contents.ownMemberships.insert(ticket.membershipID)
                // A roster with the new membership may have been delivered before this response.
                if isNew, contents.roster?.members.contains(where: { $0.id == ticket.membershipID }) == true {
                    contents.rosterCount += 1
                }
                // Other members see the client from now on, and it must receive all events published since the join.
                if contents.wantsEvents, contents.cursor.joined(at: ticket.events) {
                    contents.addArrived([.restarted])
                }
                contents.plan.joined(ticket, showing: shown)
            }
        case .set(let shown):
            try await room.setPresence(shown.map { EncodedJSON($0) })
            change { $0.plan.didSetPresence(shown) }
        case .patch(let patch):
            try await room.patchPresence(EncodedJSON(patch))
            change { $0.plan.didSetPresence(presence) }
        case .publish:
            guard let publication else { return }
            _ = try await room.publish(topic: publication.topic, payload: EncodedJSON(publication.payload))
            publication.settle(.success(()))
            change { $0.plan.published() }
        case .leave(let token):
            try await room.leave(token: token)
            change { $0.plan.left() }
        case .wait, .end: break
        }
        settleSaves()
    }

    private func failed(_ step: RoomPlan.Step, _ publication: Publication?, _ error: any Error) {
        if let publication {
            // The call was not executed, because the connection was already another one. It is repeated after the next join.
            let isToBeRepeated = [.notJoined, .roomClosed].contains(error as? RoomError)
            guard isToBeRepeated else {
                publication.settle(.failure(error))
                return change { $0.plan.published() }
            }
        }
        let signIns = signIns.currentValue
        let delay = change { contents in
            contents.plan.isSigningIn = signIns.isUnderWay || signIns.ended != contents.signInsKnown
            // A client that is excluded must no longer see the members.
            if (error as? RoomError)?.hidesMembers == true, case .join = step, contents.roster != nil {
                contents.roster = Roster()
                contents.rosterCount += 1
            }
            return contents.plan.failed(step, with: error)
        }
        if (error as? RoomError)?.isAboutPresence == true { settleSaves(refusedWith: error) }
        if let delay { retry(after: delay) }
    }

    /// Waits for events: there is nothing to send now.
    private func waitForEvents() {
        let (closing, sweep) = contents.withLock { contents -> ((any Error)?, UInt64?) in
            if contents.plan.isClosed { return (contents.plan.error, nil) }
            guard !contents.isSweeping, let first = contents.outbox.first?.deadline else { return (nil, nil) }
            contents.isSweeping = true
            return (nil, first)
        }
        if let closing { return settleAll(closing) }
        settleSaves()
        guard let sweep else { return }
        let now = MonotonicClock.now
        Task { [weak self] in
            try? await Task.sleep(for: .nanoseconds(sweep > now ? sweep - now : 0))
            self?.failExpiredEvents()
        }
    }

    /// Fails events that have waited longer than their limit.
    private func failExpiredEvents() {
        let now = MonotonicClock.now
        let overdue = change { contents in
            contents.isSweeping = false
            return contents.outbox.filter { ($0.deadline ?? .max) <= now }
        }
        let error = TrebuchetError(.timeout, "joining room '\(name)' timed out")
        for publication in overdue { publication.settle(.failure(error)) }
        wake()
    }

    func retry(after delay: Duration) {
        Task { [weak self] in
            try? await Task.sleep(for: delay)
            self?.change { $0.plan.retry() }
        }
    }

    /// Completes the saves whose presence the server has. A save that was superseded before it was sent completes with its
    /// successor.
    private func settleSaves(refusedWith error: (any Error)? = nil) {
        let done = contents.withLock { contents -> [Save] in
            let isSettled = error != nil || contents.plan.isSettled(contents.plan.presence)
            if isSettled {
                defer { contents.saves = [] }
                return contents.saves
            }
            guard let last = contents.saves.lastIndex(where: { contents.plan.isSettled($0.presence) }) else {
                return []
            }
            defer { contents.saves.removeFirst(last + 1) }
            return Array(contents.saves[...last])
        }
        for save in done {
            if let error { save.continuation.resume(throwing: error) } else { save.continuation.resume() }
        }
    }

    private func settleAll(_ error: any Error) {
        let (saves, outbox) = contents.withLock { contents in
            defer { (contents.saves, contents.outbox) = ([], []) }
            return (contents.saves, contents.outbox)
        }
        for save in saves { save.continuation.resume(throwing: error) }
        for publication in outbox { publication.settle(.failure(error)) }
    }

    /// Tries again at once when a sign-in has ended: a client that was refused before may be admitted then.
    private func watchSignIns() async {
        for await signIns in signIns.stream {
            change { contents in
                guard signIns.ended != contents.signInsKnown else { return }
                contents.signInsKnown = signIns.ended
                contents.plan.signedIn()
            }
        }
    }

    // MARK: The connection

    /// Follows the connection state, and connects when the client is idle.
    private func watchConnection() async {
        var failures = 0
        for await state in client.connectionState.stream {
            switch state {
            case .connected:
                failures = 0
                change { $0.plan.connected() }
            case .connecting(_, let error):
                change { $0.plan.disconnected(error) }
                stopReaders()
            case .draining:
                break
            case .disconnected(let error):
                change { $0.plan.disconnected(error) }
                stopReaders()
                if failures > 0 { try? await Task.sleep(for: RoomPlan.delay(after: failures)) }
                failures += 1
                // An error arrives as the next state.
                try? await client.connect()
            case .closed:
                let error = TransportError(.closed, "the client was closed")
                return change { $0.plan.closed(error) }
            }
        }
    }
}
