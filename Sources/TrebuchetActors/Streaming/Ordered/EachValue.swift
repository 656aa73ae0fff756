internal import Relays

/// Each version of a state whose delivery is `.every`, from the newest on.
enum EachValue<Value: Codable & Sendable> {
    struct Iterator {
        private enum Source {
            case remote(RemoteStream, EventSubscription<RemoteStream.Taken>.Iterator)
            case local(LocalObservation<Value>, EventSubscription<LocalObservation<Value>.Version>.Iterator)
        }

        private var source: Source
        private var first: RemoteStream.Taken?
        private var hasBegun = false
        private(set) var seen: UInt64 = 0

        /// Nil when the newest value alone counts.
        init?(_ remote: RemoteStream) {
            guard let (first, rest) = remote.subscribeToEach() else { return nil }
            source = .remote(remote, rest.makeAsyncIterator())
            self.first = first
        }

        init(_ local: LocalObservation<Value>, _ each: LocalObservation<Value>.Each) {
            let values = each.relay.subscribe(bufferLimit: each.buffer, onOverflow: .fail)
            source = .local(local, values.makeAsyncIterator())
        }

        mutating func next(isolation actor: isolated (any Actor)?) async -> Value? {
            switch source {
            case .remote(let remote, var rest):
                defer { source = .remote(remote, rest) }
                return await next(remote, &rest, isolation: actor)
            case .local(let local, var rest):
                defer { source = .local(local, rest) }
                return await next(local, &rest, isolation: actor)
            }
        }

        private mutating func next(
            _ remote: RemoteStream, _ rest: inout EventSubscription<RemoteStream.Taken>.Iterator,
            isolation actor: isolated (any Actor)?
        ) async -> Value? {
            do throws(EventOverflow) {
                while true {
                    let taken: RemoteStream.Taken
                    if let first {
                        taken = first
                        self.first = nil
                    } else {
                        guard let next = try await rest.next(isolation: actor) else { return nil }
                        taken = next
                    }
                    guard taken.count > seen else { continue }
                    seen = taken.count
                    return remote.decode(Value.self, taken.text)
                }
            } catch {
                remote.relay.fail(TrebuchetError(error))
                return nil
            }
        }

        private mutating func next(
            _ local: LocalObservation<Value>,
            _ rest: inout EventSubscription<LocalObservation<Value>.Version>.Iterator,
            isolation actor: isolated (any Actor)?
        ) async -> Value? {
            do throws(EventOverflow) {
                if !hasBegun {
                    hasBegun = true
                    guard let (value, version) = await local.read() else { return nil }
                    seen = version
                    return value
                }
                while let next = try await rest.next(isolation: actor) {
                    guard next.version > seen else { continue }
                    seen = next.version
                    return next.value
                }
                return nil
            } catch {
                local.each?.overflow.update(TrebuchetError(error))
                return nil
            }
        }
    }
}
