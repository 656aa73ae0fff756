public import StateMachines

/// The dependency that sends orders to the kitchen; tests replace it.
public struct OrderClient: TestDependencyKey, Sendable {
    public var place: @Sendable (_ dish: String, _ table: Int) async throws -> Int

    public init(place: @escaping @Sendable (_ dish: String, _ table: Int) async throws -> Int) { self.place = place }

    public static let testValue = OrderClient(place: unimplemented("OrderClient.place"))
}

extension DependencyValues {
    public var orders: OrderClient {
        get { self[OrderClient.self] }
        set { self[OrderClient.self] = newValue }
    }
}

/// The process of an order as a state machine: one order at a time, and a rejection stays until it is dismissed.
@StateMachine
@EffectComposition
public struct Ordering: StateMachine {
    /// The states of the process.
    public enum State: Equatable, Sendable {
        case idle
        case sending(dish: String)
        case taken(number: Int)
        case refused(String)
    }
    /// The inputs of the user.
    public enum Input: Equatable, Sendable {
        case order(dish: String, table: Int)
        case dismiss
    }
    /// The effects of the process.
    public enum IOEffect: Equatable, Sendable { case place(dish: String, table: Int) }
    /// The results of the effects.
    public enum IOResult: Equatable, Sendable {
        case taken(Int)
        case refused(String)
    }

    @Dependency(\.orders) var orders

    public init() {}

    public static func reduceInput(_ state: State, _ input: Input) -> Transition {
        switch (state, input) {
        case (.sending, _): identity
        case (_, .order(let dish, let table)): transition(.sending(dish: dish), .place(dish: dish, table: table))
        case (_, .dismiss): nextState(.idle)
        }
    }

    public static func reduceIOResult(_ state: State, _ ioResult: IOResult) -> Transition {
        switch ioResult {
        case .taken(let number): nextState(.taken(number: number))
        case .refused(let reason): nextState(.refused(reason))
        }
    }
}

extension Ordering: Ordering.EffectRunner {
    public func runPlace(_ dish: String, _ table: Int) -> IOResultStream {
        .single { [orders] in
            do { return .taken(try await orders.place(dish, table)) } catch { return .refused("\(error)") }
        }
    }
}
