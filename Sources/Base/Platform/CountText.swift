extension BinaryInteger {
    /// Returns the number with a noun in the singular or plural: `1 node`, `2 nodes`.
    ///
    /// - Parameter plural: the plural of the noun; nil to append an s to `singular`.
    package func counted(_ singular: String, _ plural: String? = nil) -> String {
        "\(self) \(self == 1 ? singular : plural ?? singular + "s")"
    }
}
