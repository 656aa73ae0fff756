/// A place where the code base breaks one of its rules.
struct Finding: Equatable, CustomStringConvertible {
    let path: String
    var line: Int?
    let message: String

    var description: String { "\(path)\(line.map { ":\($0)" } ?? ""): \(message)" }
}
