import SharedState
import TrebuchetServices

struct Guest: Codable, Equatable, Sendable { var name: String }
struct Line: Codable, Equatable, Sendable { var text: String }

extension Schema.Rooms {
    static let chat = RoomKey<Guest>(type: "chat")
}
extension Schema.Topics {
    static let lines = TopicKey<Line>(roomType: "chat", topic: "lines")
}
