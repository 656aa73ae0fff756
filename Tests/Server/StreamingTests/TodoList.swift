import Trebuchet

struct ListState: Codable, Sendable, Equatable {
    var items: [String] = []
}

@Trebuchet
distributed actor TodoList {
    @StreamedState var state: ListState = ListState()

    distributed func add(title: String) -> Int {
        state.items.append(title)
        return state.items.count
    }
    distributed func addLater(title: String) async -> Int {
        await Task.yield()
        return add(title: title)
    }
    /// Makes several changes in one call.
    distributed func fill(_ count: Int) {
        for index in 0..<count { state.items.append("\(index)") }
    }
}

/// An actor whose state gets its first value in a synchronous initializer.
@Trebuchet
distributed actor Thermometer {
    @StreamedState var degrees: Double

    init(_ degrees: Double, actorSystem: TrebuchetActorSystem) {
        self.actorSystem = actorSystem
        self.degrees = degrees
    }

    distributed func warm(by degrees: Double) { self.degrees += degrees }
}
