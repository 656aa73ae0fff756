import Trebuchet

struct Item: Codable, Sendable, Equatable {
    var name: String
    var isBought = false
}
