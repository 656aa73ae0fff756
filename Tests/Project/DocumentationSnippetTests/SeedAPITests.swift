import Foundation
import Loading
import QStream
import Relays
import SharedState
import StateMachines
import Testing
import Trebuchet
import TrebuchetServices

private struct Reaction: Codable, Sendable, Equatable {
    var name: String
}

private struct Chore: Codable, Sendable, Equatable, Identifiable {
    let id: UUID
    var title: String
}

extension Schema {
    fileprivate static let chores = CollectionKey<Chore>("todos")
}

/// The public names that the guides list without an example, with their signatures.
@MainActor
@Suite(.timeLimit(.minutes(5))) struct SeedAPITests {
    /// The calls, in order.
    @MainActor
    private final class Calls {
        var all: [String] = []
    }

    // MARK: Operations

    @Test("an operation has four cases, each named by its text")
    func statuses() {
        #expect(OperationStatus.allCases.map(\.rawValue) == ["idle", "pending", "success", "error"])
        #expect(OperationStatus(rawValue: "pending") == .pending)
    }

    @Test("a session provides its user and the status of its operation")
    func session() {
        let user = User(id: "ada", email: "ada@example.org")
        var auth = AuthSession(state: .authenticated(user), operationStatus: .success)
        #expect(auth.isSuccess && auth.isSignedIn && auth.isAuthenticated)
        #expect(!auth.isLoading && !auth.isError && !auth.isIdle && !auth.isGuest)
        #expect(auth.user == user)
        let signedOut: AuthState = .unauthenticated
        auth.state = signedOut
        auth.operationStatus = .error
        auth.error = CancellationError()
        #expect(auth.isError && auth.user == nil)
        #expect(auth == AuthSession(state: .unauthenticated, operationStatus: .error, error: CancellationError()))
    }

    @Test("each operation has its callbacks, the first before it returns and the last one always")
    func callbacks() async {
        let auth = Shared(value: AuthSession())
        let calls = Calls()
        let attempted: @MainActor () -> Void = { calls.all.append("attempt") }
        let failed: @MainActor (any Error) -> Void = { _ in calls.all.append("error") }

        let guest = auth.signInAsGuest(
            onAttempt: attempted, onSuccess: { (_: User) in }, onError: failed,
            onSettled: { (_: Result<User, any Error>) in calls.all.append("settled") })
        #expect(calls.all == ["attempt"])
        _ = try? await guest.value
        #expect(calls.all == ["attempt", "error", "settled"])
        #expect(auth.wrappedValue.isError && auth.wrappedValue.operationStatus == .error)

        calls.all = []
        _ = try? await auth.sendMagicCode(
            to: "ada@example.org", onAttempt: attempted, onSuccess: { (_: SendMagicCodeResponse) in }, onError: failed,
            onSettled: { (_: Result<SendMagicCodeResponse, any Error>) in calls.all.append("settled") }
        ).value
        _ = try? await auth.verifyMagicCode(
            email: "ada@example.org", code: "123456", onAttempt: attempted, onSuccess: { (_: User) in },
            onError: failed,
            onSettled: { (_: Result<User, any Error>) in calls.all.append("settled") }
        ).value
        _ = try? await auth.signOut(
            onAttempt: attempted, onSuccess: {}, onError: failed,
            onSettled: { (_: Result<Void, any Error>) in calls.all.append("settled") }
        ).value
        #expect(calls.all == Array(repeating: ["attempt", "error", "settled"], count: 3).flatMap { $0 })
        auth.reset()
        #expect(auth.wrappedValue.isIdle && auth.wrappedValue.error == nil)
    }

    @Test("publishing has the same callbacks, and the channel shows its status")
    func publishing() async {
        let channel = Shared(value: TopicChannel<Reaction>())
        let calls = Calls()
        let publish = channel.publish(
            Reaction(name: "tada"), onAttempt: { calls.all.append($0.name) }, onSuccess: {},
            onError: { _ in calls.all.append("error") },
            onSettled: { (_: Result<Void, any Error>) in calls.all.append("settled") })
        #expect(calls.all == ["tada"])
        #expect(channel.wrappedValue.isPublishing)
        _ = try? await publish.value
        #expect(calls.all == ["tada", "error", "settled"])
        let failed = channel.wrappedValue
        #expect(failed.isError && failed.publishStatus == .error && !failed.isConnected && !failed.isLoading)
        #expect(!failed.hasEvent && failed.latestEvent == nil)
        channel.reset()
        #expect(channel.wrappedValue == TopicChannel())
    }

    @Test("a presence counts its members")
    func presence() {
        var presence = RoomPresence(user: Reaction(name: "ada"))
        #expect(presence.isLoading && !presence.isConnected && !presence.isError)
        #expect(presence.totalCount == 1 && !presence.hasPeers)
        let peers: IdentifiedArrayOf<Peer<Reaction>> = [Peer(id: "1", data: Reaction(name: "bob"))]
        presence.peers = peers
        presence.user.name = "grace"
        #expect(presence.totalCount == 2 && presence.hasPeers && presence.error == nil)
    }

    @Test("a collection shows its items and its pending changes")
    func collection() {
        let todos = SharedStore.$current.withValue(SharedStore()) {
            @Shared(Schema.chores) var todos: SyncedCollection<Chore>
            return todos
        }
        let items: IdentifiedArrayOf<Chore> = todos.items
        #expect(items.isEmpty && !todos.isLoading && !todos.isSyncing && todos.lastSyncedAt == nil)
        #expect(todos.error != nil, "there is no backend")
    }

    @Test("code for all channels and all collections accepts each of them")
    func anyOfThem() {
        func isQuiet<Channel: TopicChannelProtocol>(_ channel: Shared<Channel>, _: Channel.Payload.Type) -> Bool {
            channel.wrappedValue == channel.wrappedValue
        }
        func count<Entity: EntityIdentifiable>(_ collection: SyncedCollection<Entity>) -> Int { collection.items.count }
        let channel = Shared(value: TopicChannel<Reaction>())
        let newest: TopicEvent<Reaction>? = channel.wrappedValue.latestEvent
        #expect(newest == nil && isQuiet(channel, Reaction.self))
        let todos = SharedStore.$current.withValue(SharedStore()) {
            @Shared(Schema.chores) var todos: SyncedCollection<Chore>
            return todos
        }
        #expect(count(todos) == 0)
    }

    @Test("values of operations are Equatable and Sendable")
    func conformances() {
        func check<Value: Sendable & Equatable>(_: Value.Type) {}
        check(OperationStatus.self)
        check(AuthSession.self)
        check(TopicChannel<Reaction>.self)
        check(RoomPresence<Reaction>.self)
        check(SyncedCollection<Chore>.self)
    }

    // MARK: Relay and loaders

    @Test("a relay is updated and read synchronously, and a loader publishes its stored states")
    func loaders() async {
        let relay = StateRelay(1)
        relay.update(2)
        #expect(relay.currentValue == 2)
        let states: any AsyncSequence<Int, Never> = relay.stream
        for await value in states {
            #expect(value == 2)
            break
        }
        final class Pages: BaseLoadable<Int> {
            override func fetch() async throws -> Int {
                updateState(.loading(nil))
                return 3
            }
        }
        let retrying: any Loadable = RetryableLoader(wrapping: Pages())
        let debounced = DebouncingLoadable(wrapping: Pages(), debounceInterval: 0)
        await retrying.load()
        await debounced.load()
        let current: LoadingState<Int> = debounced.currentState
        #expect(current == .loaded(3))
    }

    // MARK: State machines

    /// Applies any machine through the types of the protocol.
    private func next<Machine: StateMachine>(
        _ machine: Machine, _ state: Machine.State, _ input: Machine.Input
    ) -> (Machine.Transition, AsyncStream<Machine.IOResult>?) {
        let transition: (Machine.State?, Machine.IOEffect?) = Machine.reduceInput(state, input)
        let results: Machine.IOResultStream? = transition.1.map { machine.runIOEffect($0) }
        return (transition, results)
    }

    @Test("generated runner members can be called by their names")
    func machine() async {
        let feature = Feature()
        let (transition, results) = next(feature, Feature.State(), .tap)
        #expect(transition.0 == nil)
        var received: [String] = []
        if let results { for await result in results { received.append((try? result.value) ?? "") } }
        #expect(received == ["Result"])

        var state = Feature.State()
        let reduced: Feature.Transition = Feature.reduce(state, .input(.tap))
        #expect(reduced.1 != nil)
        _ = feature.apply(Feature.nextState(Feature.State(count: 4)), to: &state)
        #expect(state.count == 4)
        let effect: Effect<Feature.Action> = feature.applyIOEffect(.fetch(1))
        _ = effect
        _ = feature.reduce(into: &state, action: .input(.tap))
        let body: some Reducer<Feature.State, Feature.Action> = feature.body
        _ = body
        let runner: any Feature.EffectRunner = feature
        _ = runner
    }

    @Test("an event is an input or a result, for any machine")
    func events() {
        typealias Event = StateMachineEvent<Int, String>
        func read<Action: StateMachineEventConvertible>(
            _ action: Action
        ) -> StateMachineEvent<Action.Input, Action.IOResult>? { Action.map(action) }
        guard case .input(1) = read(Event.input(1)), case .ioResult("a") = read(Event.ioResult("a")) else {
            Issue.record("an event is not its own action")
            return
        }
    }
}
