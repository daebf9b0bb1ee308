"""EmpRL: generators, which write a whole response with a trained prefix or LoRA adapter."""
