"""What stands under all other parts: checked arguments, arrays, compiled loops, interrupts, warnings."""
