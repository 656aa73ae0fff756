/// The damage that a check of a whole file has found.
final class StoreDamageList {
    /// The maximum number of descriptions; further ones are only counted.
    static let limit = 100

    private(set) var descriptions: [String] = []
    private(set) var count = 0

    func add(_ description: String) {
        count += 1
        if descriptions.count < Self.limit { descriptions.append(description) }
    }
}
