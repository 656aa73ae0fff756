internal import TrebuchetCLI

@main
enum TrebuchetTool {
    static func main() async { await CommandLineTool.main() }
}
