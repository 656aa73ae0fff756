/// A position on the board; the top left one is 0, 0.
public struct GridPosition: Codable, Sendable, Hashable {
    public var x: Int
    public var y: Int
}

/// A direction of movement.
public enum Direction: String, Codable, Sendable, CaseIterable {
    case up, left, down, right
}

/// A player's rider.
public struct Rider: Codable, Sendable {
    public var name: String
    public var direction: Direction
    /// All visited positions; the last one is the current position.
    public var trail: [GridPosition]
    public var hasCrashed = false

    /// Returns the next position in a direction.
    public func next(_ direction: Direction) -> GridPosition {
        let (dx, dy) =
            switch direction {
            case .up: (0, -1)
            case .left: (-1, 0)
            case .down: (0, 1)
            case .right: (1, 0)
            }
        let here = trail[trail.count - 1]
        return GridPosition(x: here.x + dx, y: here.y + dy)
    }
}

/// The rules, without a network.
public struct Board: Codable, Sendable {
    public static let width = 32
    public static let height = 12

    public var riders: [Rider] = []
    public var tick = 0

    public var isOver: Bool { riders.contains(where: \.hasCrashed) }

    public func isFree(_ place: GridPosition) -> Bool {
        (0..<Self.width).contains(place.x) && (0..<Self.height).contains(place.y)
            && !riders.contains { $0.trail.contains(place) }
    }

    /// Moves both riders by one position at once.
    mutating func step() {
        tick += 1
        let places = riders.map { $0.next($0.direction) }
        for index in riders.indices {
            riders[index].hasCrashed = !isFree(places[index]) || places.count { $0 == places[index] } > 1
        }
        for index in riders.indices { riders[index].trail.append(places[index]) }
    }
}
