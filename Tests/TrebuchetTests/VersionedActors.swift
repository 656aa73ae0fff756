import Trebuchet

/// One actor in three versions of its program, exposed under one name.
enum FirstVersion {
    struct Chore: Codable, Sendable {
        var text: String
    }

    struct State: Codable, Sendable {
        var chores: [Chore] = []
        var marks: [String: Int] = ["late": 0, "done": 0]
        var place = Place()

        struct Place: Codable, Sendable {
            var room = "kitchen"
        }
    }

    @Trebuchet
    distributed actor Chores {
        @StreamedState(persisted: true) var state: State = State()

        distributed func add(_ text: String) { state.chores.append(Chore(text: text)) }
        distributed func forget(_ mark: String) { state.marks[mark] = nil }
        distributed func read() -> [String] { state.chores.map(\.text) }
    }
}

/// Adds members to the state and to a nested object.
enum SecondVersion {
    struct State: Codable, Sendable {
        var chores: [FirstVersion.Chore] = []
        var marks: [String: Int] = ["late": 0, "done": 0]
        var place = Place()
        var owner = "nobody"

        struct Place: Codable, Sendable {
            var room = "hall"
            var floor = 1
        }
    }

    @Trebuchet
    distributed actor Chores {
        @StreamedState(persisted: true) var state: State = State()

        distributed func own(_ name: String) { state.owner = name }
        distributed func read() -> State { state }
    }
}

/// Has another form of chores.
enum ThirdVersion {
    struct Chore: Codable, Sendable, Equatable {
        var title: String
        var priority: Int
    }

    struct State: Codable, Sendable {
        var chores: [Chore] = []
        var place = SecondVersion.State.Place()
        var owner = "nobody"
        var isOpen = true
    }

    @Trebuchet
    distributed actor Chores {
        @StreamedState(
            persisted: true, version: 2,
            migrate: { json, from in
                guard from == 1 else { return }
                json["chores"]?.mutateEach { chore in
                    chore["title"] = chore["text"]
                    chore["text"] = nil
                    chore["priority"] = 3
                }
                json["marks"] = nil
            }) var state: State = State()

        distributed func add(_ title: String) { state.chores.append(Chore(title: title, priority: 1)) }
        distributed func read() -> State { state }
    }
}

/// Migrates in Swift, with the former type.
enum LaterVersion {
    struct Unsuitable: Error {}

    struct State: Codable, Sendable {
        var titles: [String] = []
    }

    static let migrate: StateMigration = { json, from in
        guard from == 2 else { throw Unsuitable() }
        let before = try json.decode(ThirdVersion.State.self)
        json = try JSONValue(encoding: State(titles: before.chores.map(\.title)))
    }

    @Trebuchet
    distributed actor Chores {
        @StreamedState(persisted: true, version: 3, migrate: LaterVersion.migrate) var state: State = State()

        distributed func read() -> [String] { state.titles }
    }
}

/// Requires a new member of each chore and provides no default for it.
enum CarelessVersion {
    @Trebuchet
    distributed actor Chores {
        @StreamedState(persisted: true) var state: ThirdVersion.State = ThirdVersion.State()

        distributed func read() -> Int { state.chores.count }
    }
}
